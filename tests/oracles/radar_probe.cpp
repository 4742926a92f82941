// SPDX-License-Identifier: Apache-2.0
// Our side of tests/oracles/radar.py. radar_probe sweeps FILE: what the file holds, as JSON. radar_probe values FILE
// SWEEP: its values as text, a ray a line. radar_probe grid FILE SIDE CELL: what is on the grid of the lowest sweep.
// radar_probe baselines FILE...: CSI at 1 mm/h of persistence and optical flow, over every start in the sequence.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/sources/radar/grid.h"
#include "lockstep/sources/radar/scan.h"
#include "lockstep/task/radar/forecast_score.h"
#include "lockstep/task/radar/frame_strip.h"
#include "lockstep/task/radar/nowcast_score.h"

namespace {

using lockstep::base::Json;
namespace sources = lockstep::sources;
namespace task = lockstep::task;

sources::RadarVolume volume_of(const std::string& path) {
  return sources::read_volume(sources::list_scans(path, 5).at(0));
}

Json describe(const sources::PolarSweep& sweep) {
  Json all = Json::object();
  int64_t valid = 0, zero = 0;
  double raw = 0, sum = 0, most = -1000;
  for (const float value : sweep.values) {
    zero += value == sources::kNoEcho ? 1 : 0;
    if (!std::isfinite(value)) continue;
    ++valid;
    raw += 2 * value + 66;
    sum += value;
    most = std::max<double>(most, value);
  }
  all["number"] = sweep.number;
  all["elevation"] = sweep.elevation;
  all["rays"] = sweep.rays();
  all["gates"] = sweep.gates;
  all["first_gate"] = sweep.first_gate;
  all["gate_spacing"] = sweep.gate_spacing;
  all["first_azimuth"] = sweep.azimuths.front();
  all["valid"] = valid;
  all["zero"] = zero;
  all["raw_sum"] = raw;
  all["max"] = most;
  all["mean"] = valid > 0 ? sum / static_cast<double>(valid) : 0;
  return all;
}

int tell_sweeps(const std::string& path) {
  const sources::RadarVolume volume = volume_of(path);
  Json all = Json::object();
  all["site"] = volume.site;
  all["seconds"] = volume.seconds;
  all["latitude"] = std::isfinite(volume.latitude) ? Json(volume.latitude) : Json();
  all["longitude"] = std::isfinite(volume.longitude) ? Json(volume.longitude) : Json();
  all["fault"] = volume.fault;
  all["sweeps"] = Json::array();
  for (const auto& sweep : volume.sweeps) all["sweeps"].push_back(describe(sweep));
  std::puts(all.dump(-1).c_str());
  return 0;
}

int tell_values(const std::string& path, size_t number) {
  const sources::RadarVolume volume = volume_of(path);
  const sources::PolarSweep& sweep = volume.sweeps.at(number);
  for (int64_t ray = 0; ray < sweep.rays(); ++ray) {
    std::printf("%.6f", sweep.azimuths[static_cast<size_t>(ray)]);
    for (int64_t gate = 0; gate < sweep.gates; ++gate) std::printf(" %g", static_cast<double>(sweep.at(ray, gate)));
    std::puts("");
  }
  return 0;
}

int tell_grid(const std::string& path, const sources::GridShape& shape) {
  const sources::RadarVolume volume = volume_of(path);
  const auto cells = grid_sweep(volume.lowest(path), shape, sources::Gridding::nearest);
  const auto from = [&](double dbz) {
    return std::count_if(cells.begin(), cells.end(), [&](float value) { return std::isfinite(value) && value >= dbz; });
  };
  std::printf("{\"valid\": %ld, \"from20\": %ld, \"from35\": %ld, \"from50\": %ld}\n", from(-1000), from(20), from(35),
              from(50));
  return 0;
}

int tell_baselines(const std::vector<std::string>& paths) {
  constexpr int64_t kSide = 256, kInputs = 4, kOutputs = 12;
  sources::RadarOptions options;
  options.grid = {kSide, 1000};
  options.gridding = sources::Gridding::nearest;
  std::vector<std::vector<float>> frames;
  for (const auto& path : paths) {
    auto& frame = frames.emplace_back();
    for (const uint8_t code : grid_scan(sources::list_scans(path, 5).at(0), options).codes)
      frame.push_back(task::pixel_of_code(code));
  }
  lockstep::spec::Job job;
  job.data.image_size = kSide;
  job.nowcast.inputs = kInputs;
  job.nowcast.outputs = kOutputs;
  job.nowcast.thresholds = {1};
  job.nowcast.scales = {};
  task::ForecastCounts still(job.nowcast), flow(job.nowcast);
  for (size_t start = 0; start + kInputs + kOutputs <= frames.size(); ++start) {
    std::vector<float> seen;
    for (size_t i = start; i < start + kInputs; ++i) {
      for (const float pixel : frames[i]) seen.push_back(std::max(pixel, 0.0F));
    }
    const auto as_it_is = task::persistence(seen, job), carried = task::optical_flow(seen, job);
    for (int64_t lead = 0; lead < kOutputs; ++lead) {
      const auto& truth = frames[start + kInputs + static_cast<size_t>(lead)];
      const auto part = [&](const std::vector<float>& all) {
        return std::span(all).subspan(static_cast<size_t>(lead * kSide * kSide), kSide * kSide);
      };
      still.add(lead, part(as_it_is), truth, kSide, kSide);
      flow.add(lead, part(carried), truth, kSide, kSide);
    }
  }
  Json all = Json::object();
  all["persistence"] = Json::array();
  all["flow"] = Json::array();
  for (const int64_t lead : {0, 2, 5, 11}) {
    all["persistence"].push_back(still.rain(lead, 0).csi());
    all["flow"].push_back(flow.rain(lead, 0).csi());
  }
  std::puts(all.dump(-1).c_str());
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> all(words + 1, words + count);
  try {
    if (all.size() > 1 && all[0] == "sweeps") return tell_sweeps(all[1]);
    if (all.size() > 2 && all[0] == "values") return tell_values(all[1], std::stoul(all[2]));
    if (all.size() > 3 && all[0] == "grid") return tell_grid(all[1], {std::stol(all[2]), std::stod(all[3])});
    if (all.size() > 1 && all[0] == "baselines") return tell_baselines({all.begin() + 1, all.end()});
  } catch (const lockstep::base::Error& error) {
    std::cerr << error.message() << "\n";
    return error.exit_code();
  }
  return 2;
}
