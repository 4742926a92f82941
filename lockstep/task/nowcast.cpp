// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/nowcast.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "lockstep/base/base64.h"
#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/task/radar/forecast_picture.h"
#include "lockstep/task/radar/frame_strip.h"
#include "lockstep/task/radar/nowcast_score.h"

namespace lockstep::task {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

class StripEncoder final : public Encoder {
 public:
  explicit StripEncoder(const spec::Job& job) : data_(job.data), how_(job.nowcast) {}

  void encode(const StoredSample& sample, const std::optional<base::Random>& random, FieldPointers out) override {
    const auto begin = std::chrono::steady_clock::now();
    const Frames frames = read_strip(sample.image, data_.image_size.height, data_.image_size.width);
    decode_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    // A sequence that ends with the present has no frames to compare with: fine for a prediction.
    const bool has_targets = frames.count >= how_.frames();
    if (!has_targets && (random || frames.count != how_.inputs)) {
      throw Error(Blame::user,
                  text("a sequence of ", frames.count, " frames; nowcast.inputs and outputs need ", how_.frames(),
                       frames.count < how_.inputs ? "" : text(", a prediction ", how_.inputs)),
                  "prep --frames, or other nowcast.inputs and outputs");
    }
    bool mirrored = false;
    if (random && data_.augment != spec::Augment::none && data_.flip) {
      base::Random numbers = *random;
      mirrored = numbers.chance(0.5);
    }
    put(frames, 0, how_.inputs, mirrored, 0, floats(out, 0));
    if (has_targets) {
      put(frames, how_.inputs, how_.outputs, mirrored, kMissingPixel, floats(out, 1));
    } else {
      std::fill_n(floats(out, 1), count(how_.outputs), kMissingPixel);
    }
  }

  // Cells of rain that move on a straight line: what plan and bench compute with.
  void draw(int32_t /*label*/, const base::Random& random, FieldPointers out) override {
    base::Random numbers = random;
    const auto height = static_cast<double>(data_.image_size.height),
               width = static_cast<double>(data_.image_size.width);
    const double x = numbers.uniform(0, width), y = numbers.uniform(0, height), across = numbers.uniform(-2, 2),
                 down = numbers.uniform(-2, 2), radius = numbers.uniform(0.05, 0.2) * width + 1;
    for (int64_t t = 0; t < how_.frames(); ++t) {
      float* frame = t < how_.inputs ? floats(out, 0) + count(t) : floats(out, 1) + count(t - how_.inputs);
      for (int64_t row = 0; row < data_.image_size.height; ++row) {
        for (int64_t column = 0; column < data_.image_size.width; ++column) {
          const double dx = (static_cast<double>(column) - x - across * static_cast<double>(t)) / radius,
                       dy = (static_cast<double>(row) - y - down * static_cast<double>(t)) / radius;
          const double square = dx * dx + dy * dy;
          *frame++ = square < 9 ? static_cast<float>(0.8 * std::exp(-square / 2)) : 0;
        }
      }
    }
  }

  void blank(FieldPointers out) override {
    std::fill_n(floats(out, 0), count(how_.inputs), 0.0F);
    std::fill_n(floats(out, 1), count(how_.outputs), kMissingPixel);
  }
  double decode_seconds() const override { return decode_seconds_; }

 private:
  static float* floats(FieldPointers out, size_t field) { return reinterpret_cast<float*>(out[field]); }
  int64_t count(int64_t frames) const { return frames * data_.image_size.pixels(); }

  // `missing`: the pixel of what was not measured.
  static void put(const Frames& frames, int64_t from, int64_t frame_count, bool mirrored, float missing, float* out) {
    for (int64_t i = from; i < from + frame_count; ++i) {
      const auto codes = frames.frame(i);
      for (int64_t row = 0; row < frames.height; ++row) {
        for (int64_t column = 0; column < frames.width; ++column) {
          const int64_t x = mirrored ? frames.width - 1 - column : column;
          const uint8_t code = codes[static_cast<size_t>(row * frames.width + x)];
          *out++ = code == kCodeMissing ? missing : pixel_of_code(code);
        }
      }
    }
  }

  spec::Data data_;
  spec::Nowcast how_;
  double decode_seconds_ = 0;
};

class Nowcast final : public Task {
 public:
  explicit Nowcast(const spec::Job& job) : job_(job) {}

  std::vector<Field> fields() const override {
    const auto shape = [&](int64_t frames) {
      return std::vector<int64_t>{frames, 1, job_.data.image_size.height, job_.data.image_size.width};
    };
    return {{.name = "frames", .shape = shape(job_.nowcast.inputs)},
            {.name = "targets", .shape = shape(job_.nowcast.outputs)}};
  }
  std::unique_ptr<Encoder> encoder() const override { return std::make_unique<StripEncoder>(job_); }
  Classes classes() const override { return Classes::none; }
  int64_t num_outputs() const override { return job_.nowcast.outputs; }  // frames
  std::unique_ptr<Score> score(int64_t worst) const override { return make_nowcast_score(job_, worst); }

  Json report_words() const override {
    Json words = base::parse_json(R"({"share": true, "higher_is_better": true, "training": "", "validation": "csi",
                                      "also": {"persistence": "csi_persistence"}})",
                                  "report words");
    words["title"] = text("Critical success index at ", job_.nowcast.thresholds[0], " mm/h");
    if (job_.nowcast.flow) words["also"]["optical flow"] = "csi_flow";
    return words;
  }
  NetworkWords network_words() const override {
    return {.gives = "the radar frames that follow a sequence of frames",
            .normalised = "dBZ from -10 to 60 as 0 to 1, no echo and not measured as 0",
            .takes = text("Strips of ", job_.nowcast.inputs, " radar frames, ", job_.nowcast.minutes,
                          " minutes apart, of ", spec::to_text(job_.data.image_size), " cells")};
  }

  // For each lead time how much of the area has rain, and the strongest echo; the frames as a strip.
  Json record(const Rows& rows, int64_t i, int64_t /*top*/) const override {
    const int64_t height = job_.data.image_size.height, width = job_.data.image_size.width;
    const auto values = rows.output("forecast").row(i);
    const RainLaw law{job_.nowcast.zr_factor, job_.nowcast.zr_exponent};
    const double least = pixel_of_dbz(law.dbz(job_.nowcast.thresholds[0]));
    Json record = Json::object(), minutes = Json::array(), area = Json::array(), peak = Json::array();
    const auto size = static_cast<size_t>(height * width);
    for (int64_t lead = 0; lead < job_.nowcast.outputs; ++lead) {
      const auto frame = values.subspan(static_cast<size_t>(lead) * size, size);
      const auto wet = std::count_if(frame.begin(), frame.end(), [&](float value) { return value >= least; });
      minutes.push_back(static_cast<double>(lead + 1) * job_.nowcast.minutes);
      area.push_back(static_cast<double>(wet) / static_cast<double>(size));
      peak.push_back(std::round(10 * dbz_of_pixel(*std::max_element(frame.begin(), frame.end()))) / 10);
    }
    record["minutes"] = std::move(minutes);
    record["rain_area"] = std::move(area);
    record["peak_dbz"] = std::move(peak);
    const FieldValues& frames = rows.field("frames");
    const std::span seen(frames.values<float>(i), static_cast<size_t>(frames.field.count()));
    record["seen"] = base::to_base64(strip_file(codes_of_pixels(seen, height, width)));
    record["forecast"] = base::to_base64(strip_file(codes_of_pixels(values, height, width)));
    return record;
  }
  std::string line(const Json& record) const override {
    const auto& minutes = record.at("minutes").items();
    const auto& area = record.at("rain_area").items();
    const auto& peak = record.at("peak_dbz").items();
    std::vector<std::string> words;
    for (const size_t at : {size_t{0}, minutes.size() / 2, minutes.size() - 1}) {
      words.push_back(text("in ", minutes[at].as_double(), " min ", base::percent(area[at].as_double(), 1),
                           " of the area, peak ", base::fixed(peak[at].as_double(), 1), " dBZ"));
    }
    return text("rain from ", job_.nowcast.thresholds[0], " mm/h: ", base::join(words, "; "));
  }
  std::vector<std::string> columns(int64_t /*top*/) const override {
    std::vector<std::string> names;
    for (const char* what : {"rain_area", "peak_dbz"}) {
      for (int64_t lead = 0; lead < job_.nowcast.outputs; ++lead)
        names.push_back(text(what, "_", static_cast<double>(lead + 1) * job_.nowcast.minutes));
    }
    return names;
  }
  std::vector<std::string> cells(const Json& record, int64_t /*top*/) const override {
    std::vector<std::string> cells;
    for (const auto& value : record.at("rain_area").items()) cells.push_back(base::fixed(value.as_double(), 5));
    for (const auto& value : record.at("peak_dbz").items()) cells.push_back(base::fixed(value.as_double(), 1));
    return cells;
  }
  bool draw(const Json& record, image::Image& on) const override {
    const ShownForecast forecast = shown(record);
    if (forecast.forecast.count == 0) return false;
    on = forecast_sheet(forecast);
    return true;
  }
  std::string animation(const Json& record) const override {
    const ShownForecast forecast = shown(record);
    return forecast.forecast.count == 0 ? "" : forecast_animation(forecast);
  }

 private:
  ShownForecast shown(const Json& record) const {
    const auto frames = [&](const char* name) {
      const std::string packed = record.string_or(name, "");
      if (packed.empty()) return Frames{};
      const std::string file = base::from_base64(packed, text("the forecast's ", name));
      return read_strip(std::as_bytes(std::span(file.data(), file.size())), job_.data.image_size.height,
                        job_.data.image_size.width);
    };
    return {frames("seen"), frames("truth"), frames("forecast"), job_.nowcast.minutes};
  }

  spec::Job job_;
};

}  // namespace

std::unique_ptr<Task> make_nowcast(const spec::Job& job) {
  return std::make_unique<Nowcast>(job);
}

}  // namespace lockstep::task
