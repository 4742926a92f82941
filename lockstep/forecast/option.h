// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/forecast/energy.h"
#include "lockstep/forecast/limits.h"
#include "lockstep/forecast/loader_rate.h"
#include "lockstep/forecast/money.h"
#include "lockstep/forecast/trial.h"

namespace lockstep::forecast {

// Everything about one way to run the job.
struct Option {
  MachineOption machine_option = {};
  Levers levers = {};
  bool as_written = true;
  std::vector<std::string> changes = {};  // "training.micro_batch=64": what --set takes
  Trial trial = {};
  bool drivable = true;
  double samples_per_second = 0;
  Pace pace = {};
  std::optional<Length> length = {};
  std::optional<LoaderRate> loader = {};
  std::optional<EnergyForecast> energy = {};
  Costs costs = {};
  HostMemory host = {};  // of one node
  std::vector<std::string> why = {};

  // Bytes per second that the step eats, of stored samples. REQUIRES: loader.
  double read_rate_wanted() const { return loader->read_rate / loader->samples * samples_per_second; }
  // The run would come to its end: it fits, starts, and its jobs make progress.
  bool feasible() const {
    return trial.fits && !trial.refusal && host_fits() && trial.time && (!length || length->jobs > 0);
  }
  // Of a node with GPUs; of processors alone `trial` says it.
  bool host_fits() const {
    return !machine_option.gpu || machine_option.machine.memory_per_node == 0 ||
           host.total <= machine_option.machine.memory_per_node;
  }
};
// The recording behind an option's memory.
const Recording& find_recording(const ForecastContext& context, const Option& option);

Option forecast_option(const ForecastContext& context, const MachineOption& machine_option, const Levers& levers);
// Of a trial that was made with these levers there.
Option forecast_option(const ForecastContext& context, const MachineOption& machine_option, const Levers& levers,
                       Trial trial);

}  // namespace lockstep::forecast
