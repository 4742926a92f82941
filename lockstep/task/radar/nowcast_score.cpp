// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/radar/nowcast_score.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lockstep/base/base64.h"
#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/task/kept_rows.h"
#include "lockstep/task/radar/forecast_score.h"
#include "lockstep/task/radar/motion.h"

namespace lockstep::task {
namespace {

using base::Json;
using base::text;

constexpr size_t kMethods = 3;
constexpr std::array<const char*, kMethods> kMethodNames = {"network", "persistence", "flow"};
constexpr double kDryDb = -15, kLeastRate = 0.1;  // pysteps': below it a pixel counts as dry
constexpr int64_t kMotionFrames = 4;              // the latest ones that motion is taken from

struct LeadError {
  int64_t id = 0;
  int64_t lead = 0;
  int64_t pixels = 0;  // that were measured
  double loss = 0;
  std::array<double, kMethods> square = {};
};

class NowcastScore final : public Score {
 public:
  NowcastScore(const spec::Job& job, int64_t worst) : job_(job), loss_(job.nowcast), worst_(worst) {
    for (size_t m = 0; m < methods(); ++m) counts_.emplace_back(how_);
  }

  void add(const Rows& rows) override {
    for (int64_t i = 0; i < rows.size(); ++i) {
      const auto field = [&](const char* name) {
        const FieldValues& values = rows.field(name);
        return std::span(values.values<float>(i), static_cast<size_t>(values.field.count()));
      };
      const auto targets = field("targets");
      if (std::all_of(targets.begin(), targets.end(), [](float value) { return value < 0; })) continue;  // not read
      add_sample(rows.sample_ids[static_cast<size_t>(i)], field("frames"), targets, rows.output("forecast").row(i));
    }
  }

  std::string pack() const override {
    std::vector<std::string> parts{errors_.pack(), worst_.pack()};
    for (const auto& counts : counts_) parts.push_back(counts.pack());
    return join_parts(parts);
  }

  void merge(std::string_view packed) override {
    errors_.merge(next_part(packed));
    worst_.merge(next_part(packed));
    for (auto& counts : counts_) counts.merge(next_part(packed));
  }

  int64_t samples() const override { return errors_.size() / std::max<int64_t>(how_.outputs, 1); }
  bool is_sound() const override { return std::isfinite(total_loss()); }

  Headline headline() const override {
    const double csi = counts_[0].rain_of_all_leads(0).csi();
    const double value = std::isfinite(csi) ? csi : 0;  // nothing to see, nothing forecast
    return {"csi", value, true, text("CSI ", base::fixed(value, 4), " at ", how_.thresholds[0], " mm/h")};
  }

  Json figures() const override {
    Json all = Json::object();
    all["loss"] = total_loss();
    all["csi"] = headline().value;
    const RainCounts rain = counts_[0].rain_of_all_leads(0);
    all["pod"] = rain.pod();
    all["far"] = rain.far();
    for (size_t m = 0; m < methods(); ++m) {
      const std::string name = m == 0 ? "" : text("_", kMethodNames[m]);
      if (m > 0) all["csi" + name] = counts_[m].rain_of_all_leads(0).csi();
      all["mse" + name] = mean_square(m, -1);
    }
    return all;
  }

  std::string line() const override {
    std::string words = headline().text;
    for (size_t m = 1; m < methods(); ++m)
      words += text("  ", kMethodNames[m], " ", base::fixed(counts_[m].rain_of_all_leads(0).csi(), 4));
    return words + text("  MSE ", base::fixed(mean_square(0, -1), 5), "  loss ", base::fixed(total_loss(), 4));
  }

  std::string to_text() const override {
    std::vector<base::Column> columns{{"lead"}};
    for (size_t m = 0; m < methods(); ++m) columns.push_back({text("CSI ", kMethodNames[m]), base::Align::right});
    for (const char* name : {"POD", "FAR", "ETS"}) columns.push_back({name, base::Align::right});
    if (!how_.scales.empty()) columns.push_back({text("FSS ", how_.scales.back(), " cells"), base::Align::right});
    columns.push_back({"MSE", base::Align::right});
    base::Table table(columns);
    for (int64_t lead = 0; lead < how_.outputs; ++lead) {
      const RainCounts& rain = counts_[0].rain(lead, 0);
      std::vector<std::string> cells{text(minutes_at(lead), " min")};
      for (size_t m = 0; m < methods(); ++m) cells.push_back(base::fixed(counts_[m].rain(lead, 0).csi(), 3));
      for (const double value : {rain.pod(), rain.far(), rain.ets()}) cells.push_back(base::fixed(value, 3));
      if (!how_.scales.empty())
        cells.push_back(base::fixed(counts_[0].fractions(lead, 0, how_.scales.size() - 1).score(), 3));
      cells.push_back(base::fixed(mean_square(0, lead), 5));
      table.add(cells);
    }
    return text("  ", line(), "\n\n", "at ", how_.thresholds[0], " mm/h\n", table.to_text());
  }

  Json to_json() const override {
    Json all = figures();
    all["samples"] = samples();
    Json minutes = Json::array();
    for (int64_t lead = 0; lead < how_.outputs; ++lead) minutes.push_back(minutes_at(lead));
    all["minutes"] = std::move(minutes);
    all["thresholds"] = Json::array_of(how_.thresholds);
    all["scales"] = Json::array_of(how_.scales);
    all["methods"] = Json::object();
    for (size_t m = 0; m < methods(); ++m) all["methods"][kMethodNames[m]] = method_json(m);
    all["curves"] = curves();
    all["worst"] = Json::array();
    for (const auto& [key, record] : worst_.worst_first()) {
      const double loss = -key.first;
      Json row = Json::object();
      row["sample"] = key.second;
      row["loss"] = loss;
      row["target"] = text(how_.outputs, " frames");
      row["predicted"] = text("loss ", base::fixed(loss, 4));
      row["record"] = record;
      all["worst"].push_back(std::move(row));
    }
    return all;
  }

 private:
  size_t methods() const { return how_.flow ? kMethods : kMethods - 1; }
  double minutes_at(int64_t lead) const { return static_cast<double>(lead + 1) * how_.minutes; }

  void add_sample(int64_t id, std::span<const float> frames, std::span<const float> targets,
                  std::span<const float> forecast) {
    std::vector<std::vector<float>> forecasts;
    forecasts.emplace_back(forecast.begin(), forecast.end());
    forecasts.push_back(persistence(frames, job_));
    if (how_.flow) forecasts.push_back(optical_flow(frames, job_));
    const auto size = static_cast<size_t>(job_.data.image_size.pixels());
    double loss = 0;
    for (int64_t lead = 0; lead < how_.outputs; ++lead) {
      const auto part = [&](std::span<const float> all) { return all.subspan(static_cast<size_t>(lead) * size, size); };
      LeadError error{id, lead};
      const auto seen = part(targets);
      for (size_t m = 0; m < forecasts.size(); ++m) {
        const auto given = part(forecasts[m]);
        counts_[m].add(lead, given, seen, job_.data.image_size.height, job_.data.image_size.width);
        for (size_t i = 0; i < size; ++i) {
          if (seen[i] < 0) continue;
          const double off = static_cast<double>(given[i]) - seen[i];
          error.square[m] += off * off;
          if (m != 0) continue;
          ++error.pixels;
          error.loss += loss_(given[i], seen[i]);
        }
      }
      loss += error.pixels == 0 ? 0 : error.loss / static_cast<double>(error.pixels);
      errors_.add(error);
    }
    keep(id, loss / static_cast<double>(how_.outputs), frames, targets, forecast);
  }

  void keep(int64_t id, double loss, std::span<const float> frames, std::span<const float> targets,
            std::span<const float> forecast) {
    if (std::isnan(loss)) loss = std::numeric_limits<double>::infinity();
    if (!worst_.takes(-loss, id)) return;
    const auto strip = [&](std::span<const float> pixels) {
      return base::to_base64(
          strip_file(codes_of_pixels(pixels, job_.data.image_size.height, job_.data.image_size.width)));
    };
    Json record = Json::object();
    record["seen"] = strip(frames);
    record["truth"] = strip(targets);
    record["forecast"] = strip(forecast);
    worst_.add(-loss, id, std::move(record));
  }

  // Of all leads (-1) or one, over all measured pixels.
  double mean_square(size_t method, int64_t lead) const {
    double sum = 0;
    int64_t pixels = 0;
    for (const LeadError& error : errors_.in_order()) {
      if (lead >= 0 && error.lead != lead) continue;
      sum += error.square[method];
      pixels += error.pixels;
    }
    return pixels == 0 ? 0 : sum / static_cast<double>(pixels);
  }
  // As training has it: the mean over the samples of the mean over their pixels.
  double total_loss() const {
    double sum = 0, of_sample = 0, pixels = 0;
    int64_t count = 0;
    for (const LeadError& error : errors_.in_order()) {
      if (error.lead == 0) of_sample = pixels = 0;
      of_sample += error.loss;
      pixels += static_cast<double>(error.pixels);
      if (error.lead + 1 != how_.outputs) continue;
      sum += pixels > 0 ? of_sample / pixels : 0;
      ++count;
    }
    return count == 0 ? 0 : sum / static_cast<double>(count);
  }

  template <class Of>
  Json by_lead(const Of& of) const {
    Json list = Json::array();
    for (int64_t lead = 0; lead < how_.outputs; ++lead) {
      const double value = of(lead);
      list.push_back(std::isfinite(value) ? Json(value) : Json());
    }
    return list;
  }

  Json method_json(size_t m) const {
    Json all = Json::object();
    all["mse"] = by_lead([&](int64_t lead) { return mean_square(m, lead); });
    for (const char* name : {"csi", "pod", "far", "ets", "fss"}) all[name] = Json::array();
    for (size_t t = 0; t < how_.thresholds.size(); ++t) {
      const auto of = [&](double (RainCounts::*figure)() const) {
        return by_lead([&](int64_t lead) { return (counts_[m].rain(lead, t).*figure)(); });
      };
      all["csi"].push_back(of(&RainCounts::csi));
      all["pod"].push_back(of(&RainCounts::pod));
      all["far"].push_back(of(&RainCounts::far));
      all["ets"].push_back(of(&RainCounts::ets));
      Json scales = Json::array();
      for (size_t s = 0; s < how_.scales.size(); ++s)
        scales.push_back(by_lead([&](int64_t lead) { return counts_[m].fractions(lead, t, s).score(); }));
      all["fss"].push_back(std::move(scales));
    }
    return all;
  }

  template <class Of>
  Json curve(const std::string& title, bool share, const Of& of) const {
    Json one = Json::object();
    one["title"] = title;
    one["x"] = "minutes";
    one["share"] = share;
    one["series"] = Json::array();
    for (size_t m = 0; m < methods(); ++m) {
      Json series = Json::object(), points = Json::array();
      for (int64_t lead = 0; lead < how_.outputs; ++lead) {
        const double value = of(m, lead);
        if (std::isfinite(value)) points.push_back(Json::array({minutes_at(lead), value}));
      }
      series["name"] = kMethodNames[m];
      series["points"] = std::move(points);
      one["series"].push_back(std::move(series));
    }
    return one;
  }

  Json curves() const {
    Json all = Json::array();
    for (size_t t = 0; t < how_.thresholds.size(); ++t) {
      const RainCounts rain = counts_[0].rain_of_all_leads(t);
      if (rain.hits + rain.misses == 0) continue;  // it never rained as hard
      all.push_back(curve(text("CSI at ", how_.thresholds[t], " mm/h"), true,
                          [&](size_t m, int64_t lead) { return counts_[m].rain(lead, t).csi(); }));
    }
    for (size_t s = 0; s < how_.scales.size(); ++s) {
      all.push_back(curve(text("FSS at ", how_.thresholds[0], " mm/h, ", how_.scales[s], " cells"), true,
                          [&](size_t m, int64_t lead) { return counts_[m].fractions(lead, 0, s).score(); }));
    }
    all.push_back(curve("Mean squared error", false, [&](size_t m, int64_t lead) { return mean_square(m, lead); }));
    return all;
  }

  spec::Job job_;
  const spec::Nowcast& how_ = job_.nowcast;
  PixelLoss loss_;
  KeptRows<LeadError> errors_;
  std::vector<ForecastCounts> counts_;  // by method
  WorstRecords worst_;                  // by their loss, below 0
};

}  // namespace

Frames codes_of_pixels(std::span<const float> pixels, int64_t height, int64_t width) {
  Frames frames{static_cast<int64_t>(pixels.size()) / (height * width), height, width, {}};
  frames.codes.reserve(pixels.size());
  for (const float pixel : pixels) {
    frames.codes.push_back(pixel == kMissingPixel ? kCodeMissing
                           : !(pixel > 0)         ? kCodeDry
                                                  : code_of_dbz(dbz_of_pixel(std::min(pixel, 1.0F))));
  }
  return frames;
}

std::vector<float> persistence(std::span<const float> frames, const spec::Job& job) {
  const auto last = frames.last(static_cast<size_t>(job.data.image_size.pixels()));
  std::vector<float> all;
  all.reserve(last.size() * static_cast<size_t>(job.nowcast.outputs));
  for (int64_t lead = 0; lead < job.nowcast.outputs; ++lead) all.insert(all.end(), last.begin(), last.end());
  return all;
}

std::vector<float> optical_flow(std::span<const float> frames, const spec::Job& job) {
  const int64_t height = job.data.image_size.height, width = job.data.image_size.width;
  const auto size = static_cast<size_t>(height * width);
  const int64_t shown = static_cast<int64_t>(frames.size() / size);
  if (shown < 2) return persistence(frames, job);
  const RainLaw law{job.nowcast.zr_factor, job.nowcast.zr_exponent};
  std::vector<Plane> planes;
  for (int64_t i = std::max<int64_t>(0, shown - kMotionFrames); i < shown; ++i) {
    Plane plane(height, width);
    const auto pixels = frames.subspan(static_cast<size_t>(i) * size, size);
    for (size_t k = 0; k < size; ++k) {
      const double rate = pixels[k] > 0 ? law.rate(dbz_of_pixel(pixels[k])) : 0;
      plane.values[k] = static_cast<float>(rate < kLeastRate ? kDryDb : 10 * std::log10(rate));
    }
    planes.push_back(std::move(plane));
  }
  Plane last(height, width);
  std::copy(frames.end() - static_cast<int64_t>(size), frames.end(), last.values.begin());
  std::vector<float> all;
  all.reserve(size * static_cast<size_t>(job.nowcast.outputs));
  for (const Plane& plane : carry_on(last, find_motion(planes), job.nowcast.outputs, 0)) {
    all.insert(all.end(), plane.values.begin(), plane.values.end());
  }
  return all;
}

std::unique_ptr<Score> make_nowcast_score(const spec::Job& job, int64_t worst) {
  return std::make_unique<NowcastScore>(job, worst);
}

}  // namespace lockstep::task
