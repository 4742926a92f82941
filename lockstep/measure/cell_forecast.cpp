// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/cell_forecast.h"

#include <map>

#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/forecast/baselines.h"

namespace lockstep::measure {
namespace {

using base::Json;

// The keys of a measured row that say which cell it is.
constexpr const char* kCellOf[] = {"model",     "batch",       "image_size", "precision",
                                   "optimizer", "micro_batch", "recompute",  "expandable_segments",
                                   "layout",    "kernels",     "graph"};

Json cell_of(const Json& row) {
  Json cell = Json::object();
  for (const char* key : kCellOf) {
    if (const Json* value = row.find(key)) cell[key] = *value;
  }
  return cell;
}

}  // namespace

std::vector<CellForecast> forecast_cells(const Json& rows, const catalogue::Gpu& gpu,
                                         const forecast::Calibration& calibration, const CellTracer& trace,
                                         const std::function<void(const std::string&)>& say) {
  std::map<std::string, forecast::Calibration> unseen;
  std::vector<CellForecast> all;
  for (const auto& row : rows.items()) {
    if (!row.contains("seconds") || row.string_or("device", "cuda") == "cpu") continue;
    CellForecast one{.cell = parse_cell(cell_of(row)), .measured = row, .recording = {}, .time = {}, .memory = {}};
    try {
      one.recording = trace(one.cell, gpu);
    } catch (const base::Error& error) {
      if (error.blame() == base::Blame::bug) throw;
      say(base::text(one.cell.name(), ": ", error.what()));
      continue;
    }
    const std::string& model = one.cell.job.model.name;
    const auto& others = unseen.try_emplace(model, calibration.without_model(model)).first->second;
    one.time = forecast::forecast_time(one.recording, gpu, others);
    auto rules = forecast::memory_rules(gpu);
    rules.expandable_segments = one.cell.expandable_segments;
    one.memory = forecast::forecast_memory(one.recording, rules);
    one.weights_only = static_cast<double>(forecast::weights_only(one.recording));
    one.live_bytes = static_cast<double>(forecast::live_bytes_peak(one.recording));
    one.deepsim = forecast::deepsim_heuristic(one.recording);
    all.push_back(std::move(one));
  }
  return all;
}

Json cell_forecast_row(const CellForecast& one, const std::string& command) {
  Json row = Json::object();
  row["what"] = "forecast of a cell";
  const Json cell = cell_of(one.measured);
  for (const auto& member : cell.members()) row[member.key] = member.value;
  row["seconds"] = one.seconds();
  row["forecast_seconds"] = one.time.step.value;
  row["ratio"] = one.time.step.value / one.seconds();
  row["roofline_ratio"] = one.time.roofline / one.seconds();
  row["device_seconds"] = one.time.device;
  row["host_seconds"] = one.time.host;
  if (one.measured.contains("peak_reserved_bytes")) {
    row["peak_reserved_bytes"] = one.reserved();
    row["forecast_peak_reserved_bytes"] = one.memory.peak_reserved;
    row["memory_ratio"] = 1 + one.memory_error(static_cast<double>(one.memory.peak_reserved));
    row["weights_only_ratio"] = 1 + one.memory_error(one.weights_only);
    row["live_bytes_ratio"] = 1 + one.memory_error(one.live_bytes);
    row["deepsim_ratio"] = 1 + one.memory_error(one.deepsim);
  }
  row["command"] = command;
  row["commit"] = base::build_commit();
  row["machine"] = one.measured.string_or("machine", "");
  return row;
}

}  // namespace lockstep::measure
