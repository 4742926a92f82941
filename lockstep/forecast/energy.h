// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/catalogue/rows.h"
#include "lockstep/forecast/calibration.h"
#include "lockstep/forecast/time.h"

namespace lockstep::forecast {

// What surrounds the devices. Everything that is assumed stands here, to be printed and overridden.
struct PowerRules {
  double idle_share = 0.15;  // of a GPU's power limit, when nothing runs (H200: 105 of 700 W)
  double node_watts = 300;   // processors, memory, fans of a node, beside its GPUs
  double overhead = 1.2;     // PUE: the building's watts for each watt of the machine
};

struct EnergyForecast {
  double joules = 0;         // all of it, at the meter of the building
  double device_joules = 0;  // the GPUs
  double node_joules = 0;    // the rest of the nodes
  double device_watts = 0;   // one GPU, on average over the step
};

// `seconds` of steps like `step` on `devices` GPUs in `nodes` nodes. User error when the GPU's power is not stated.
EnergyForecast forecast_energy(const TimeForecast& step, double seconds, const catalogue::Gpu& gpu, int64_t devices,
                               int64_t nodes, const Calibration& calibration, const PowerRules& rules = {});
// `sockets` of that processor, all of whose cores are busy; `devices` and node_watts as above.
EnergyForecast forecast_energy(double seconds, const catalogue::Cpu& cpu, int64_t sockets, int64_t nodes,
                               const PowerRules& rules = {});

}  // namespace lockstep::forecast
