// SPDX-License-Identifier: Apache-2.0
// memory_probe RECORDING GPU [--expandable]: the peaks that the forecast gives the recorded step on that GPU, as JSON.
#include <cstdio>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/catalogue/catalogue.h"
#include "lockstep/forecast/baselines.h"
#include "lockstep/forecast/memory.h"

int main(int argc, char** argv) {
  using namespace lockstep;
  try {
    const auto recording = forecast::read_recording(argv[1]);
    auto rules = forecast::memory_rules(catalogue::load_embedded().gpu(argv[2]));
    rules.expandable_segments = argc > 3 && std::string(argv[3]) == "--expandable";
    const auto found = forecast::forecast_memory(recording, rules);
    base::Json json = base::Json::object();
    json["allocated"] = found.peak_allocated;
    json["reserved"] = found.peak_reserved;
    json["cold_reserved"] = found.cold_peak_reserved;
    json["moment"] = found.moment;
    json["weights_only"] = forecast::weights_only(recording);
    json["live_bytes"] = forecast::live_bytes_peak(recording);
    json["deepsim"] = forecast::deepsim_heuristic(recording);
    std::printf("%s\n", json.dump().c_str());
  } catch (const base::Error& error) {
    std::printf("%s\n", error.message().c_str());
    return error.exit_code();
  }
  return 0;
}
