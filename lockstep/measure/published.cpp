// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/published.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <tuple>

#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/forecast/choice_value.h"
#include "lockstep/forecast/collective.h"

namespace lockstep::measure {
namespace {

using base::text;

constexpr double kDisputed = 0.15;  // sources that differ by more do not measure the same thing

// The whole cell as a number; 0 when it is none.
double number_in(const std::string& cell) {
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return error == std::errc{} && end == cell.data() + cell.size() ? value : 0;
}

bool contains(const std::string& whole, std::string_view part) {
  return whole.find(part) != std::string::npos;
}

Published read_row(const base::Csv& csv, const base::Csv::Row& cells) {
  Published row;
  row.line = cells.line;
  row.model = csv.at(cells, "model");
  row.framework = csv.at(cells, "framework");
  row.gpu = csv.at(cells, "gpu");
  row.precision = csv.at(cells, "precision");
  row.metric = csv.at(cells, "metric");
  row.notes = csv.at(cells, "notes");
  row.source = csv.at(cells, "source");
  row.gpus = static_cast<int64_t>(number_in(csv.at(cells, "n_gpus")));
  row.batch = static_cast<int64_t>(number_in(csv.at(cells, "per_gpu_batch")));
  row.image_size = static_cast<int64_t>(number_in(csv.at(cells, "image_size")));
  row.value = number_in(csv.at(cells, "value"));
  row.pcie = contains(csv.at(cells, "interconnect"), "PCIe");
  if (contains(row.notes, "AMP uses NHWC") ? row.precision == "amp16" : contains(row.notes, "NHWC")) {
    row.layout = forecast::Layout::channels_last;
  }
  row.updates = !contains(row.notes, "fwd+bwd");
  return row;
}

// Why a row cannot be compared; empty when it can.
std::string exclude(const Published& row, const base::Csv& csv, const base::Csv::Row& cells) {
  if (!row.framework.starts_with("PyTorch")) return "framework is not PyTorch";
  if (contains(row.framework, "DataParallel")) return "DataParallel: one process splits and gathers";
  if (contains(row.framework, "MLPerf")) return "MLPerf: kernels of its own";
  if (row.metric != "img/s" && row.metric != "sec/iter") return text("metric is ", row.metric);
  if (row.zoo.empty()) return "network is not in the zoo";
  if (row.id.empty()) return "GPU is not in the catalogue";
  if (row.batch <= 0) return "batch is not stated";
  if (row.image_size <= 0) return "image size is not stated";
  if (row.gpus <= 0 || row.value <= 0) return "GPUs or value are not stated";
  if (csv.at(cells, "n_nodes") != "1") return "several nodes: the rate between them is not stated";
  const std::set<std::string> known = {"fp32", "tf32", "amp16", "bf16", "fp16_pure"};
  return known.count(row.precision) != 0 ? "" : text("precision is ", row.precision);
}

std::string lookup(const std::map<std::string, std::string>& names, const std::string& name) {
  const auto found = names.find(name);
  return found == names.end() ? "" : found->second;
}

// What was published ran in fp16 where our step computes in bf16; the tensors are of the same size.
void compute_in_fp16(forecast::Recording& recording) {
  for (auto& op : recording.operators) {
    if (op.type == forecast::NumberType::bf16) op.type = forecast::NumberType::fp16;
  }
}

// The last step, without the optimizer's operators when none ran.
void keep_last_step(forecast::Recording& recording, bool updates) {
  using forecast::EventKind;
  const auto begin = std::find_if(recording.events.rbegin(), recording.events.rend(),
                                  [](const auto& event) { return event.kind == EventKind::step_begin; });
  if (begin != recording.events.rend()) recording.events.erase(recording.events.begin(), begin.base() - 1);
  std::erase_if(recording.events, [&](const forecast::Event& event) {
    if (event.kind == EventKind::birth || event.kind == EventKind::death) return true;
    return !updates && event.kind == EventKind::run &&
           recording.operators[static_cast<size_t>(event.id)].phase == forecast::Phase::update;
  });
}

forecast::TimeForecast forecast_row(const PublishedForecast& one, const catalogue::Catalogue& catalogue,
                                    const forecast::Calibration& calibration) {
  catalogue::Gpu gpu = catalogue.gpu(one.row->id);
  if (one.row->pcie) gpu.nvlink_gbs = 0;
  const auto network = forecast::derive_network(gpu, one.row->gpus, one.row->gpus);
  return forecast::forecast_time(one.recording, gpu, calibration, network);
}

double with_factor(const PublishedForecast& one, const Era& era, double factor, const catalogue::Catalogue& catalogue,
                   const forecast::Calibration& calibration) {
  if (era.scales == EraScales::step) return factor * forecast_row(one, catalogue, calibration).step.value;
  return forecast_row(one, catalogue, calibration.with_host(factor)).step.value;
}

void mark_disputed(std::vector<PublishedForecast>& forecasts) {
  using Key = std::tuple<std::string, std::string, std::string, int64_t>;
  std::map<Key, std::vector<PublishedForecast*>> groups;
  for (auto& one : forecasts) groups[{one.row->zoo, one.row->id, one.row->precision, one.row->gpus}].push_back(&one);
  for (auto& [key, group] : groups) {
    // Compared a sample: batches differ between sources.
    const auto rate = [](const PublishedForecast* one, double seconds) {
      return static_cast<double>(one->row->batch) / seconds;
    };
    double least = 1e300, most = 0;
    std::set<std::string> sources;
    for (const auto* one : group) {
      least = std::min(least, rate(one, one->row->seconds()));
      most = std::max(most, rate(one, one->row->seconds()));
      sources.insert(one->row->source);
    }
    if (sources.size() < 2 || most / least < 1 + kDisputed) continue;
    for (auto* one : group) {
      const double ours = rate(one, one->seconds);
      one->disputed = ours >= least && ours <= most;
    }
  }
}

}  // namespace

PublishedNames parse_names(const base::Json& document) {
  PublishedNames names;
  for (const auto& [key, value, position] : document.at("gpus").members()) names.gpus[key] = value.as_string();
  for (const auto& [key, value, position] : document.at("models").members()) names.models[key] = value.as_string();
  for (const auto& row : document.at("eras").items()) {
    Era era{.name = row.at("name").as_string(), .begins = {}};
    for (const auto& beginning : row.at("begins").items()) era.begins.push_back(beginning.as_string());
    era.scales = forecast::choice_value<EraScales>(row.at("scales"));
    era.factor = row.at("factor").as_double();
    names.eras.push_back(std::move(era));
  }
  if (names.eras.size() > 4) {
    throw base::Error(base::Blame::user, text(document.at("eras").where(), ": at most four eras have a factor"),
                      "join two of them");
  }
  return names;
}

PublishedNames load_names() {
  for (const auto& file : base::embedded_files()) {
    if (file.name.ends_with("measure/published_names.json")) {
      return parse_names(base::parse_json(file.content, std::string(file.name)));
    }
  }
  throw base::Error(base::Blame::bug, "published_names.json is not in the program");
}

double Published::seconds() const {
  return metric == "sec/iter" ? value : static_cast<double>(batch * gpus) / value;
}

std::vector<Published> read_published(const base::Csv& csv, const PublishedNames& names,
                                      const catalogue::Catalogue& catalogue) {
  std::vector<Published> rows;
  for (const auto& cells : csv.rows) {
    Published row = read_row(csv, cells);
    row.zoo = lookup(names.models, row.model);
    row.id = lookup(names.gpus, row.gpu);
    if (!row.id.empty()) (void)catalogue.gpu(row.id);
    row.excluded = exclude(row, csv, cells);
    const auto fits = [&](const Era& era) {
      return std::any_of(era.begins.begin(), era.begins.end(),
                         [&](const std::string& beginning) { return row.framework.starts_with(beginning); });
    };
    const auto era = std::find_if(names.eras.begin(), names.eras.end(), fits);
    row.era = static_cast<size_t>(era - names.eras.begin());
    if (era == names.eras.end() && row.excluded.empty()) row.excluded = "framework is of no era";
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<PublishedForecast> forecast_published(std::vector<Published>& rows, const PublishedNames& names,
                                                  const catalogue::Catalogue& catalogue,
                                                  const forecast::Calibration& calibration, const Tracer& trace) {
  using Key = std::tuple<std::string, std::string, int64_t, int64_t, bool, bool>;
  std::map<Key, forecast::Recording> traced;
  std::vector<PublishedForecast> forecasts;
  for (auto& row : rows) {
    if (!row.excluded.empty()) continue;
    PublishedForecast one{.row = &row, .recording = {}};
    try {
      const Key key{row.zoo, row.precision, row.batch, row.image_size, row.gpus > 1, row.updates};
      if (traced.count(key) == 0) {
        forecast::Recording recording = trace(row);
        keep_last_step(recording, row.updates);
        if (row.precision != "bf16") compute_in_fp16(recording);
        traced[key] = std::move(recording);
      }
      one.recording = traced[key];
      one.recording.layout = row.layout;
      const auto bare = forecast_row(one, catalogue, calibration);
      one.bare = bare.step.value;
      one.roofline = bare.roofline;
      const Era& era = names.eras[row.era];
      one.seconds = with_factor(one, era, era.factor, catalogue, calibration);
    } catch (const base::Error& error) {
      if (error.blame() == base::Blame::bug) throw;
      row.excluded = error.what();
      continue;
    }
    forecasts.push_back(std::move(one));
  }
  mark_disputed(forecasts);
  return forecasts;
}

std::vector<double> fit_eras(const std::vector<PublishedForecast>& forecasts, const PublishedNames& names,
                             const catalogue::Catalogue& catalogue, const forecast::Calibration& calibration) {
  std::vector<double> factors;
  for (size_t era = 0; era < names.eras.size(); ++era) {
    std::vector<const PublishedForecast*> members;
    for (const auto& one : forecasts) {
      if (one.row->era == era) members.push_back(&one);
    }
    const bool step = names.eras[era].scales == EraScales::step;
    double best = 1, least = 1e300;
    // In steps of 3 %: finer than the spread of the rows. A row far off counts like one that is 50 % off.
    for (int power = -25; power <= 40 && !members.empty(); ++power) {
      const double factor = std::pow(1.03, power);
      double error = 0;
      for (const auto* one : members) {
        const double seconds =
            step ? factor * one->bare : with_factor(*one, names.eras[era], factor, catalogue, calibration);
        const double off = std::log(seconds / one->row->seconds());
        error += std::min(off * off, 0.16);
      }
      if (error < least) least = error, best = factor;
    }
    factors.push_back(std::round(best * 100) / 100);
  }
  return factors;
}

std::vector<Scaling> compare_scaling(const std::vector<PublishedForecast>& forecasts) {
  std::vector<Scaling> all;
  const auto same = [](const Published& a, const Published& b) {
    return std::tie(a.zoo, a.id, a.precision, a.batch, a.framework, a.image_size) ==
           std::tie(b.zoo, b.id, b.precision, b.batch, b.framework, b.image_size);
  };
  for (const auto& one : forecasts) {
    if (one.row->gpus != 1) continue;
    for (const auto& many : forecasts) {
      if (many.row->gpus == 1 || !same(*one.row, *many.row)) continue;
      // The nearest row of one GPU in the file is of the same table.
      const bool nearest = std::none_of(forecasts.begin(), forecasts.end(), [&](const PublishedForecast& other) {
        return other.row->gpus == 1 && same(*other.row, *many.row) &&
               std::abs(other.row->line - many.row->line) < std::abs(one.row->line - many.row->line);
      });
      if (!nearest) continue;
      all.push_back({&one, &many, one.row->seconds() / many.row->seconds(), one.seconds / many.seconds});
    }
  }
  return all;
}

}  // namespace lockstep::measure
