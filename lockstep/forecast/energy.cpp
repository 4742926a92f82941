// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/energy.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::forecast {
namespace {

double stated_power(const catalogue::Number& watts, const std::string& id, const char* list) {
  if (watts && *watts > 0) return *watts;
  throw base::Error(base::Blame::user, base::text("'", id, "' has no tdp_w in the catalogue: its energy is not known"),
                    base::text("put a row of ", id, " with tdp_w into ~/.config/lockstep/catalogue/", list, ".json"));
}

EnergyForecast add_up(double device_watts, double seconds, int64_t devices, int64_t nodes, const PowerRules& rules) {
  base::ensure(rules.overhead >= 1 && rules.node_watts >= 0, "a building takes at least what its machines take");
  EnergyForecast energy;
  energy.device_watts = device_watts;
  energy.device_joules = device_watts * seconds * static_cast<double>(devices);
  energy.node_joules = rules.node_watts * seconds * static_cast<double>(nodes);
  energy.joules = (energy.device_joules + energy.node_joules) * rules.overhead;
  return energy;
}

}  // namespace

EnergyForecast forecast_energy(const TimeForecast& step, double seconds, const catalogue::Gpu& gpu, int64_t devices,
                               int64_t nodes, const Calibration& calibration, const PowerRules& rules) {
  const double cap = stated_power(gpu.tdp_w, gpu.id, "gpus");
  const double idle = cap * rules.idle_share;
  const PowerShares& shares = calibration.basis(rates_of(gpu)).power;
  const double busy = step.step.value > 0 ? std::min(1.0, step.device / step.step.value) : 0;
  const double active = shares.memory_bound + (shares.compute_bound - shares.memory_bound) * step.compute_bound_share;
  return add_up(idle + (cap - idle) * busy * active, seconds, devices, nodes, rules);
}

EnergyForecast forecast_energy(double seconds, const catalogue::Cpu& cpu, int64_t sockets, int64_t nodes,
                               const PowerRules& rules) {
  return add_up(stated_power(cpu.tdp_w, cpu.id, "cpus"), seconds, sockets, nodes, rules);
}

}  // namespace lockstep::forecast
