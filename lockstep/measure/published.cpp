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
#include "lockstep/forecast/collective.h"

namespace lockstep::measure {
namespace {

using base::text;

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
  row.python = row.framework.starts_with("PyTorch");
  return row;
}

// Why a row cannot be compared; empty when it can.
std::string exclude(const Published& row, const base::Csv& csv, const base::Csv::Row& cells) {
  if (!row.python && !contains(row.framework, "Torch7") && !row.framework.starts_with("TensorFlow 1.x") &&
      row.framework != "MXNet") {
    return "framework compiles its step, or is not known";
  }
  if (contains(row.framework, "DataParallel")) return "DataParallel: one process splits and gathers";
  if (contains(row.framework, "MLPerf")) return "MLPerf: kernels of its own";
  if (row.metric != "img/s" && row.metric != "sec/iter") return text("metric is ", row.metric);
  if (row.zoo.empty()) return "network is not in the zoo";
  if (contains(row.zoo, "rcnn_")) return "detector: proposals and the batch's canvas are not stated";
  if (row.id.empty()) return "GPU is not in the catalogue";
  if (row.batch <= 0) return "batch is not stated";
  if (row.image_size <= 0) return "image size is not stated";
  if (row.gpus <= 0 || row.value <= 0) return "GPUs or value are not stated";
  if (csv.at(cells, "n_nodes") != "1") return "several nodes: the rate between them is not stated";
  const std::set<std::string> known = {"fp32", "tf32", "amp16", "bf16", "fp16_pure"};
  return known.count(row.precision) != 0 ? "" : text("precision is ", row.precision);
}

// The first two parts of a source are whose it is and which of his reports.
std::string origin_of(const std::string& source, const std::vector<Origin>& origins) {
  for (const auto& origin : origins) {
    const bool fits = std::any_of(origin.begins.begin(), origin.begins.end(),
                                  [&](const std::string& beginning) { return source.starts_with(beginning); });
    if (fits) return origin.name;
  }
  const size_t first = source.find('/');
  return source.substr(0, first == std::string::npos ? first : source.find('/', first + 1));
}

std::string lookup(const std::map<std::string, std::string>& names, const std::string& name) {
  const auto found = names.find(name);
  return found == names.end() ? "" : found->second;
}

// Frameworks of one age call kernels of one age.
std::string era_of(const std::string& framework) {
  for (const char* early : {"Torch7", "TensorFlow", "MXNet", "PyTorch 0"}) {
    if (contains(framework, early)) return "before PyTorch 1";
  }
  for (const char* first : {"PyTorch 1", "NGC 20", "NGC 21"}) {
    if (contains(framework, first)) return "PyTorch 1";
  }
  return "later";
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

// Rows of the calibrated GPU and of its variants are foretold as they are; the others by families that have not seen
// their origin.
void foretell(std::vector<PublishedForecast>& forecasts, const forecast::GpuFamilies& families,
              const catalogue::Catalogue& catalogue, const forecast::Calibration& calibration) {
  const auto steps = carried_steps(forecasts);
  std::map<std::string, forecast::GpuFamilies> unseen;
  for (auto& one : forecasts) {
    const std::string& origin = one.row->origin;
    if (unseen.count(origin) == 0) unseen[origin] = fit_families(without_origin(steps, origin), families);
    const double host = one.row->python ? unseen[origin].python_host : 1;
    const auto step = forecast_row(one, catalogue, calibration.with_families(unseen[origin]).with_host(host)).step;
    one.seconds = step.value;
    one.low = step.low;
    one.high = step.high;
    one.by_era =
        one.bare * era_factor(without_origin(steps, origin), era_of(one.row->framework), one.carried.arithmetic);
  }
}

}  // namespace

PublishedNames parse_names(const base::Json& document) {
  PublishedNames names;
  for (const auto& [key, value, position] : document.at("gpus").members()) names.gpus[key] = value.as_string();
  for (const auto& [key, value, position] : document.at("models").members()) names.models[key] = value.as_string();
  for (const auto& row : document.at("origins").items()) {
    Origin origin{.name = row.at("name").as_string(), .begins = {}};
    for (const auto& beginning : row.at("begins").items()) origin.begins.push_back(beginning.as_string());
    names.origins.push_back(std::move(origin));
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
    row.origin = origin_of(row.source, names.origins);
    rows.push_back(std::move(row));
  }
  return rows;
}

double coverage_by_report(const std::vector<const PublishedForecast*>& forecasts) {
  std::map<std::string, std::pair<double, double>> reports;  // inside, of so many
  for (const auto* one : forecasts) {
    auto& [inside, rows] = reports[one->row->origin];
    inside += one->inside() ? 1 : 0;
    ++rows;
  }
  double sum = 0;
  for (const auto& [origin, report] : reports) sum += report.first / report.second;
  return reports.empty() ? 0 : sum / static_cast<double>(reports.size());
}

std::vector<forecast::CarriedStep> carried_steps(const std::vector<PublishedForecast>& forecasts) {
  std::vector<forecast::CarriedStep> steps;
  for (const auto& one : forecasts) {
    if (!one.carried.family.empty()) steps.push_back(one.carried);
  }
  return steps;
}

std::vector<PublishedForecast> forecast_published(std::vector<Published>& rows, const catalogue::Catalogue& catalogue,
                                                  const forecast::GpuFamilies& families,
                                                  const forecast::Calibration& calibration, const Tracer& trace) {
  const forecast::Calibration bare = calibration.with_families({});
  const forecast::Calibration ahead = bare.with_host(0);
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
      const auto time = forecast_row(one, catalogue, bare);
      one.bare = time.step.value;
      one.roofline = time.roofline;
      const auto rates = forecast::rates_of(catalogue.gpu(row.id));
      const bool as_it_is = bare.measured(rates) || bare.variant(rates);
      if (bare.variant(rates)) one.variant_of = rates.variant_of;
      one.carried = {.family = as_it_is ? "" : families.of(rates.capability).name,
                     .arithmetic = forecast::arithmetic_of(one.recording),
                     .origin = row.origin,
                     .era = era_of(row.framework),
                     .python = row.python,
                     .host = time.host,
                     .device = forecast_row(one, catalogue, ahead).step.value,
                     .seconds = row.seconds()};
    } catch (const base::Error& error) {
      if (error.blame() == base::Blame::bug) throw;
      row.excluded = error.what();
      continue;
    }
    forecasts.push_back(std::move(one));
  }
  foretell(forecasts, families, catalogue, calibration);
  return forecasts;
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
