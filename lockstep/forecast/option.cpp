// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/option.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/forecast/reasons.h"
#include "lockstep/run/save_clock.h"

namespace lockstep::forecast {
namespace {

using base::Blame;
using base::Error;

constexpr double kSyncs = 0.03;  // seconds until a disk has synced the files and folders of the smallest checkpoint
constexpr double kEnding = 0.3;  // seconds behind the last step, whatever the size (results/promise-h200.json)

// How the phases differ in time, and the passes that fill their caches. A resume fills that of its phase again.
void fill_phase_pace(const ForecastContext& context, Option& option) {
  const RunAmount& work = context.workload.work;
  const double samples =
      static_cast<double>(work.samples + work.validation_samples) / static_cast<double>(option.machine_option.ranks());
  double epochs = 0;
  for (const PhaseWork& phase : context.workload.phases) epochs += phase.epochs;
  for (PhaseTrial& phase : option.trial.phases) {
    const PhaseWork& about = context.workload.phases[phase.phase];
    const double share = about.epochs / epochs;
    option.pace.phases.push_back({.share = share, .step = phase.time->step.value, .loads = !about.caches});
    if (!about.caches) continue;
    const double reading = option.loader ? samples * static_cast<double>(option.machine_option.ranks()) /
                                               std::max(1e-9, option.loader->samples)
                                         : 0;
    const double computing = samples * phase.fill_sample;
    // A processor that decodes does not compute meanwhile.
    phase.fill = option.machine_option.gpu ? std::max(computing, option.pace.loader_rate > 0 ? reading : 0)
                                           : computing + reading;
    option.pace.features += phase.fill;
    option.pace.refill += share * phase.fill;
  }
}

void fill_pace(const ForecastContext& context, Option& option) {
  const Assumptions& assumed = context.assumptions;
  const Trial& trial = option.trial;
  const Recording& recording = find_recording(context, option);
  const auto bytes = static_cast<double>(recording.checkpoint_bytes);
  option.pace.step = trial.time->step.value;
  option.pace.evaluation_sample = evaluation_sample(context, option.machine_option, option.levers, trial);
  option.pace.start_up = assumed.start_up_of(option.machine_option);
  const double hash = bytes / assumed.hash_rate;
  option.pace.save = kSyncs + hash + checkpoint_seconds(bytes, assumed.write_rate);
  option.pace.stall = bytes / assumed.copy_rate;
  // The last copy, the hash of the state, and the weights as a file of their own.
  const auto weights = static_cast<double>(recording.parameter_bytes);
  option.pace.finish = (option.machine_option.gpu ? kEnding : 0) + option.pace.stall + bytes / assumed.upload_rate +
                       hash + weights / assumed.hash_rate + checkpoint_seconds(weights, assumed.write_rate);
  if (const auto failures = context.workload.mean_time_between_failures) {
    option.pace.first_save = run::SaveClock(*failures, 0).interval();
    // The thread that writes is taken to be busy for as long as it takes.
    const run::SaveCost cost{.stall = option.pace.stall, .processor = option.pace.save, .durable = option.pace.save};
    option.pace.save_interval = run::young_interval(cost, *failures);
  }
  option.pace.restore = checkpoint_seconds(bytes, assumed.read_rate) + hash;  // it is checked before it is used
  option.pace.walltime =
      context.workload.walltime > 0 ? context.workload.walltime : option.machine_option.machine.scheduler.walltime;
  const auto batch = static_cast<double>(work_at(context, option.machine_option).global_batch);
  option.samples_per_second = batch / option.pace.step;
  if (!context.workload.decodes) return;
  SampleSize size = assumed.sample;
  size.image_pixels = static_cast<double>(context.workload.image_pixels);
  const int64_t cores =
      option.machine_option.named ? cores_of(option.machine_option) * option.machine_option.nodes() : 0;
  const double clock = option.machine_option.cpu ? option.machine_option.cpu->base_ghz.value_or(0) : 0;
  const double read =
      option.machine_option.machine.file_system.read_rate * static_cast<double>(option.machine_option.nodes());
  option.loader = forecast_loader(size, std::max<int64_t>(1, cores), clock, read, option.samples_per_second);
  if (cores > 0 && option.machine_option.gpu) option.pace.loader_rate = option.loader->samples;
}

void fill_energy_and_money(const ForecastContext& context, Option& option) {
  if (!option.length) return;
  const MachineOption& machine_option = option.machine_option;
  const double seconds = option.length->jobs > 0 ? option.length->total : option.length->useful;
  try {
    option.energy = machine_option.gpu
                        ? forecast_energy(*option.trial.time, seconds, *machine_option.gpu, machine_option.gpus,
                                          machine_option.nodes(), context.calibration, context.assumptions.power)
                        : forecast_energy(seconds, *machine_option.cpu,
                                          std::max<int64_t>(1, machine_option.machine.sockets_per_node),
                                          machine_option.nodes(), context.assumptions.power);
  } catch (const Error& error) {
    if (error.blame() != Blame::user) throw;  // hours are worth having without joules
    option.why.emplace_back(error.what());
  }
  spec::Machine machine = machine_option.machine;
  if (machine.prices.kwh == 0 && context.assumptions.kwh > 0) {
    machine.prices.kwh = context.assumptions.kwh;
    machine.prices.currency = context.assumptions.currency;
    if (!machine_option.named) machine.source = "--assume kwh";
  }
  option.costs = estimate_costs({.seconds = seconds,
                                 .gpus = machine_option.gpus,
                                 .nodes = machine_option.nodes(),
                                 .gpus_per_node = machine_option.named ? machine_option.per_node : 0,
                                 .joules = option.energy ? option.energy->joules : 0},
                                machine, machine_option.named, machine_option.gpu ? machine_option.gpu->id : "",
                                context.catalogue.clouds);
}

}  // namespace

const Recording& find_recording(const ForecastContext& context, const Option& option) {
  return context.recordings.of(option.trial.trace_key);
}

Option forecast_option(const ForecastContext& context, const MachineOption& machine_option, const Levers& levers) {
  return forecast_option(context, machine_option, levers, try_levers(context, machine_option, levers));
}

Option forecast_option(const ForecastContext& context, const MachineOption& machine_option, const Levers& levers,
                       Trial trial) {
  Option option;
  option.machine_option = machine_option;
  option.why = machine_option.notes;
  option.levers = levers;
  option.drivable = !machine_option.gpu || !machine_option.gpu->planning_only();
  option.trial = std::move(trial);
  if (option.trial.time) {
    fill_pace(context, option);
    fill_phase_pace(context, option);
    option.length = estimate_length(work_at(context, machine_option), option.pace);
    fill_energy_and_money(context, option);
  }
  option.host = host_memory(context, machine_option, levers, find_recording(context, option));
  add_reasons(context, option);
  return option;
}

}  // namespace lockstep::forecast
