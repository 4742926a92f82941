// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/trial.h"

#include <algorithm>
#include <bit>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/forecast/collective.h"
#include "lockstep/forecast/phases.h"
#include "lockstep/forecast/run_rules.h"

namespace lockstep::forecast {
namespace {

using base::Blame;
using base::Error;
using base::text;

// With fewer samples some networks call other operators than with many, and their step cannot be told from that.
constexpr int64_t kFewest = 8;
constexpr int64_t kColours = 3;  // of a recording that somebody else made
// Of a step on a GPU that was not calibrated, what uploads take lies between these multiples: nodes differ in PCIe and
// memory.
constexpr double kUploadLow = 0.5;
constexpr double kUploadHigh = 2;

template <class Choice>
Choice choice_of(const std::string& name) {
  const auto names = choices_of(Choice{});
  const auto found = std::find(names.begin(), names.end(), name);
  base::ensure(found != names.end(), text("'", name, "' is a choice"));
  return static_cast<Choice>(found - names.begin());
}

// A step of many passes from one of a single pass and one of two: passes beyond the first are alike. Of whole gradients
// only the last one talks to the other ranks; of gradients in parts (training.zero 2 and 3) every one.
TimeForecast with_passes(const TimeForecast& one, const TimeForecast& two, double passes) {
  const auto extrapolate = [&](double a, double b) { return a + (passes - 1) * std::max(0.0, b - a); };
  TimeForecast all = two;
  all.step.value = extrapolate(one.step.value, two.step.value);
  all.step.low = extrapolate(one.step.low, two.step.low);
  all.step.high = extrapolate(one.step.high, two.step.high);
  all.device = extrapolate(one.device, two.device);
  all.bytes = extrapolate(one.bytes, two.bytes);
  all.host = extrapolate(one.host, two.host);
  const bool every_pass = two.communication > 1.5 * one.communication;
  all.communication = every_pass ? extrapolate(one.communication, two.communication) : one.communication;
  all.exposed = every_pass ? extrapolate(one.exposed, two.exposed) : one.exposed;
  all.host_bound = one.host_bound;
  for (auto& [kind, seconds] : all.by_class) {
    const auto found = one.by_class.find(kind);
    seconds = extrapolate(found == one.by_class.end() ? 0 : found->second, seconds);
  }
  return all;
}

Network network_between(const ForecastContext& context, const MachineOption& machine_option) {
  if (machine_option.ranks() == 1) return {};
  const spec::Links& links = machine_option.machine.links;
  double inter = links.inter.rate;
  if (machine_option.nodes() > 1 && inter == 0) {
    if (machine_option.own) {
      throw Error(Blame::user,
                  text(machine_option.name, ": links.inter.rate is not stated, and ", machine_option.gpus, " GPUs are ",
                       machine_option.nodes(), " nodes of ", machine_option.per_node),
                  "add to the document \"links\": {\"inter\": {\"rate\": \"12.5 GB/s\"}}, one direction of a node");
    }
    inter = context.assumptions.inter_rate;
  }
  if (machine_option.gpus % machine_option.nodes() != 0) {
    throw Error(Blame::user,
                text(machine_option.gpus, " GPUs do not fill ", machine_option.nodes(), " nodes of ",
                     machine_option.name, " evenly"),
                text("--gpus ", machine_option.nodes() * machine_option.per_node));
  }
  Network network =
      derive_network(*machine_option.gpu, machine_option.ranks(), machine_option.gpus / machine_option.nodes(), inter);
  if (links.intra.rate > 0) network.intra_rate = links.intra.rate;
  network.intra_latency = links.intra.latency;
  network.inter_latency = links.inter.latency;
  return network;
}

TimeForecast forecast_step_time(const ForecastContext& context, const MachineOption& machine_option,
                                const Recording& recording) {
  if (!machine_option.gpu)
    return forecast_time(recording, *machine_option.cpu, cores_of(machine_option), context.calibration);
  return forecast_time(recording, *machine_option.gpu, context.calibration, network_between(context, machine_option));
}

TraceKey trace_key_for(const Workload& workload, const MachineOption& machine_option, const Levers& levers,
                       int64_t micro_batch, int64_t passes) {
  const bool several = machine_option.ranks() > 1;  // one rank has nobody to share with, or to talk to
  const int64_t zero = several ? levers.zero : 0;
  return {.precision = levers.precision,
          .recompute = levers.recompute,
          .attention = choose_attention(machine_option.gpu ? &*machine_option.gpu : nullptr, levers.precision),
          .reduced = machine_option.ranks() > 1,
          .micro_batch = micro_batch,
          .passes = passes,
          .zero = zero,
          .ranks = zero > 0 || (several && workload.sync_norm) ? machine_option.ranks() : 0};
}

// What is traced for a step of this trial in that phase. Slices are all executed: what is kept between them grows with
// their number.
TraceKey step_key(const ForecastContext& context, const MachineOption& machine_option, const Levers& levers,
                  const Trial& trial, int64_t most_passes, const PhaseWork& phase) {
  const int64_t slices = context.workload.virtual_ranks;
  const int64_t passes = slices == 0 ? std::min(most_passes, trial.passes) : trial.passes;
  TraceKey trace_key = trace_key_for(context.workload, machine_option, levers, trial.micro_batch, passes);
  trace_key.evaluation_rows = evaluation_rows(context, machine_option, levers);
  trace_key.phase = phase.trace;
  trace_key.graph = phase.graph;
  if (slices == 0) return trace_key;
  trace_key.slices = slices;
  trace_key.ranks = slices / trial.passes;
  return trace_key;
}

// One rank alone, without gradients: an evaluation pass, or with `fills` the one that fills a cache of features.
TraceKey pass_key(const ForecastContext& context, const MachineOption& machine_option, const Levers& levers,
                  const Trial& trial) {
  const int64_t rows = evaluation_rows(context, machine_option, levers);
  TraceKey trace_key = trace_key_for(context.workload, machine_option, levers, rows > 0 ? rows : trial.micro_batch, 1);
  trace_key.recompute.clear();
  trace_key.reduced = false;
  trace_key.zero = trace_key.ranks = 0;
  return trace_key;
}

TraceKey fill_key(const ForecastContext& context, const MachineOption& machine_option, const Levers& levers,
                  const Trial& trial, const PhaseWork& phase) {
  TraceKey trace_key = pass_key(context, machine_option, levers, trial);
  trace_key.phase = phase.trace;
  trace_key.fills = true;
  return trace_key;
}

// What is there all through the step beside what was traced.
void add_kept(int64_t bytes, MemoryClass kind, MemoryForecast& memory) {
  if (bytes <= 0) return;
  for (int64_t* sum : {&memory.peak_allocated, &memory.peak_reserved, &memory.cold_peak_reserved, &memory.total,
                       &memory.by_class[kind]}) {
    *sum += bytes;
  }
  for (auto& point : memory.curve) point.by_class[static_cast<size_t>(kind)] += bytes;
}

// While a step is computed twice the state before it is kept: weights, statistics, moving average, and what the
// optimizer has; whole, also where the ranks have parts of it. A step's samples lie on the GPU together, also those of
// passes that were not traced.
void add_untraced(const ForecastContext& context, const Recording& recording, int64_t rows, MemoryForecast& memory) {
  const int64_t copies = recording.captured ? 2 : 1;  // a CUDA graph reads its batch where it was captured
  add_kept(copies * rows * context.workload.sample.kept, MemoryClass::inputs, memory);
  if (context.workload.replay_every > 0) add_kept(recording.checkpoint_bytes, MemoryClass::other, memory);
}

RunRequirements run_requirements(const ForecastContext& context, const MachineOption& machine_option,
                                 const Levers& levers) {
  return context.workload.rules ? context.workload.rules->requirements(machine_option, levers) : RunRequirements{};
}

// What is alive counts, the holes of the heap, and the program itself.
void count_on_cpu(const ForecastContext& context, const MachineOption& machine_option, const Levers& levers,
                  const Recording& step, MemoryForecast& memory) {
  memory.fragmentation = forecast_heap_holes(memory.peak_allocated);
  memory.cold_peak_reserved = memory.peak_reserved = memory.peak_allocated + memory.fragmentation;
  memory.context = host_memory(context, machine_option, levers, step).total;
  memory.total = memory.peak_reserved + memory.context;
}

// Of the pass that fills the phase's cache, or of its step, whichever needs more.
MemoryForecast phase_memory(const ForecastContext& context, const MachineOption& machine_option, const Levers& levers,
                            const Trial& trial, const PhaseWork& phase) {
  const MemoryRules rules = machine_option.gpu ? memory_rules(*machine_option.gpu) : MemoryRules{};
  const TraceKey trace_key = step_key(context, machine_option, levers, trial, 2, phase);
  const Recording& recording = context.recordings.of(trace_key);
  const int64_t traced_rows = context.workload.weak ? trial.rows : trial.micro_batch * trace_key.passes;
  const int64_t odd = machine_option.gpu && phase.odd > 0 ? std::max(phase.odd, kFewest) : 0;
  MemoryForecast memory = context.recordings.memory(trace_key, rules, odd);
  add_untraced(context, recording, phase.caches ? 0 : trial.rows - traced_rows, memory);
  if (!machine_option.gpu) count_on_cpu(context, machine_option, levers, recording, memory);
  if (!phase.caches || !context.evaluation) return memory;
  MemoryForecast filling = context.evaluation->memory(fill_key(context, machine_option, levers, trial, phase), rules);
  if (!machine_option.gpu) count_on_cpu(context, machine_option, levers, recording, filling);
  return filling.total > memory.total ? filling : memory;
}

void fill_memory(const ForecastContext& context, const MachineOption& machine_option, const Levers& levers,
                 Trial& trial) {
  trial.capacity =
      machine_option.gpu ? memory_rules(*machine_option.gpu).capacity : machine_option.machine.memory_per_node;
  const std::vector<PhaseWork>& phases = phases_of(context.workload);
  for (size_t i = 0; i < phases.size(); ++i) {
    MemoryForecast memory = phase_memory(context, machine_option, levers, trial, phases[i]);
    if (!context.workload.phases.empty()) trial.phases.push_back({.phase = i, .memory = memory.total});
    if (i > 0 && memory.total <= trial.memory.total) continue;
    trial.memory = std::move(memory);
    trial.trace_key = step_key(context, machine_option, levers, trial, 2, phases[i]);
  }
  trial.fits = trial.capacity == 0 ? !machine_option.gpu : trial.memory.total <= trial.capacity;
}

TimeForecast phase_step_time(const ForecastContext& context, const MachineOption& machine_option, const Levers& levers,
                             const Trial& trial, const PhaseWork& phase) {
  const auto of_passes = [&](int64_t passes) {
    return forecast_step_time(context, machine_option,
                              context.recordings.of(step_key(context, machine_option, levers, trial, passes, phase)));
  };
  TimeForecast one = of_passes(1);
  if (trial.passes == 1 || context.workload.virtual_ranks > 0) return one;
  // The last micro-batch may be smaller.
  return with_passes(one, of_passes(2), static_cast<double>(trial.rows) / static_cast<double>(trial.micro_batch));
}

// Seconds until `samples` images have gone to a GPU as the loader gives them; a recorded step has its own ways.
double upload_seconds(const ForecastContext& context, const MachineOption& machine_option, double samples) {
  if (!machine_option.gpu || context.workload.weak) return 0;
  return samples * static_cast<double>(context.workload.sample.sent) / context.assumptions.upload_rate;
}

// What is sent ahead takes time only where it takes longer than the step before it.
void add_upload(double seconds, bool ahead, TimeForecast& time) {
  const double before = time.step.value;
  const bool measured = time.step.basis == Basis::measured;
  const auto add = [&](double& step, double upload) { step = ahead ? std::max(step, upload) : step + upload; };
  add(time.step.value, seconds);
  add(time.step.low, measured ? seconds : kUploadLow * seconds);
  add(time.step.high, measured ? seconds : kUploadHigh * seconds);
  time.by_class[OperatorClass::copy] += time.step.value - before;
}

// Every so many steps one is computed twice; what is kept and compared stays on the GPU.
void add_replays(const ForecastContext& context, TimeForecast& time) {
  if (context.workload.replay_every == 0) return;
  const double times = 1 + 1 / static_cast<double>(context.workload.replay_every);
  for (double* seconds : {&time.step.value, &time.step.low, &time.step.high}) *seconds *= times;
  for (double* seconds : {&time.device, &time.host, &time.communication, &time.exposed}) *seconds *= times;
  time.bytes *= times;
  for (auto& [kind, seconds] : time.by_class) seconds *= times;
}

// Seconds of a pass over one sample, on one rank alone.
double pass_sample(const ForecastContext& context, const MachineOption& machine_option, const TraceKey& trace_key) {
  MachineOption alone = machine_option;
  alone.gpus = std::min<int64_t>(1, machine_option.gpus);
  const Recording& recording = context.evaluation->of(trace_key);
  return forecast_step_time(context, alone, recording).step.value / static_cast<double>(recording.micro_batch);
}

void fill_times(const ForecastContext& context, const MachineOption& machine_option, const Levers& levers,
                Trial& trial) {
  const double upload = upload_seconds(context, machine_option, static_cast<double>(trial.rows));
  const std::vector<PhaseWork>& phases = phases_of(context.workload);
  std::vector<WeightedTime> all;
  for (size_t i = 0; i < phases.size(); ++i) {
    TimeForecast time = phase_step_time(context, machine_option, levers, trial, phases[i]);
    add_replays(context, time);
    if (!phases[i].caches) add_upload(upload, context.workload.sample.ahead, time);
    all.push_back({time, phases[i].epochs});
    if (trial.phases.empty()) continue;
    trial.phases[i].time = std::move(time);
    if (!phases[i].caches || !context.evaluation) continue;
    trial.phases[i].fill_sample =
        pass_sample(context, machine_option, fill_key(context, machine_option, levers, trial, phases[i])) +
        upload_seconds(context, machine_option, 1);
  }
  trial.time = mean_time(all);
}

void fill_time(const ForecastContext& context, const MachineOption& machine_option, const Levers& levers,
               Trial& trial) {
  if (machine_option.only_memory) {
    trial.no_time = "only its memory is given";
    return;
  }
  try {
    fill_times(context, machine_option, levers, trial);
  } catch (const Error& error) {
    const bool known = !machine_option.gpu || has_rates(*machine_option.gpu);
    if (error.blame() != Blame::user || (machine_option.own && known)) throw;
    trial.time.reset();  // the GPU's row lacks a rate: whether it fits is worth knowing all the same
    for (auto& phase : trial.phases) phase.time.reset();
    trial.no_time = text(error.what(), error.fix().empty() ? "" : "; fix: ", error.fix());
  }
}

// Whole slices to each rank: their number is a power of two, and where the ranks do not divide it some have one more
// than others. Counted then as on the next power of two below, which is a little too much.
void cut_into_slices(int64_t batch, int64_t slices, int64_t ranks, Trial& trial) {
  const auto even = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::min(ranks, slices))));
  trial.passes = slices / even;
  trial.micro_batch = (batch + slices - 1) / slices;
  trial.rows = trial.micro_batch * trial.passes;
}

}  // namespace

const std::vector<PhaseWork>& phases_of(const Workload& workload) {
  return workload.phases.empty() ? workload.whole : workload.phases;
}

int64_t cores_of(const MachineOption& machine_option) {
  if (machine_option.machine.cores_per_node > 0) return machine_option.machine.cores_per_node;
  return machine_option.cpu
             ? machine_option.cpu->cores.value_or(0) * std::max<int64_t>(1, machine_option.machine.sockets_per_node)
             : 0;
}

spec::Job with_levers(spec::Job job, const Levers& levers) {
  job.training.precision = choice_of<spec::Precision>(levers.precision);
  job.training.recompute = levers.recompute;
  job.training.micro_batch = levers.micro_batch;
  job.training.zero = levers.zero;
  if (levers.data_memory > 0) job.data.memory = levers.data_memory;
  return job;
}

RunAmount work_at(const ForecastContext& context, const MachineOption& machine_option) {
  RunAmount work = context.workload.work;
  if (context.workload.weak) work.global_batch *= machine_option.ranks();
  return work;
}

int64_t evaluation_rows(const ForecastContext& context, const MachineOption& machine_option, const Levers& levers) {
  return context.workload.rules ? context.workload.rules->evaluation_rows(machine_option, levers) : 0;
}

bool fits_safely(const Trial& trial) {
  return trial.fits && static_cast<double>(trial.memory.total) <= kSafeShare * static_cast<double>(trial.capacity);
}

int64_t fixed_bytes(const MemoryForecast& memory) {
  return memory.context + memory.nccl + memory.fixed;
}

Trial try_levers(const ForecastContext& context, const MachineOption& machine_option, const Levers& levers,
                 Depth depth) {
  Trial trial;
  const int64_t ranks = machine_option.ranks();
  const int64_t batch = work_at(context, machine_option).global_batch;
  trial.rows = (batch + ranks - 1) / ranks;
  trial.micro_batch = levers.micro_batch > 0 ? std::min(levers.micro_batch, trial.rows) : trial.rows;
  trial.passes = (trial.rows + trial.micro_batch - 1) / trial.micro_batch;
  if (const int64_t slices = context.workload.virtual_ranks; slices > 0) cut_into_slices(batch, slices, ranks, trial);
  trial.refusal = run_requirements(context, machine_option, levers).refusal;
  fill_memory(context, machine_option, levers, trial);
  if (trial.fits || depth == Depth::all) fill_time(context, machine_option, levers, trial);
  return trial;
}

HostMemory host_memory(const ForecastContext& context, const MachineOption& machine_option, const Levers& levers,
                       const Recording& recording) {
  HostNeeds needs{.ranks = machine_option.gpu ? machine_option.gpus / machine_option.nodes() : 1,
                  .gpu = machine_option.gpu.has_value()};
  const RunRequirements requirements = run_requirements(context, machine_option, levers);
  needs.loader = requirements.loader_bytes;
  needs.pinned = requirements.pinned_bytes;
  needs.features = requirements.feature_bytes;
  needs.staged = requirements.staged_bytes;
  if (!context.workload.rules) {
    // A recording's own loader is taken to keep three batches ready, and two on their way to the GPU.
    const int64_t batch = recording.micro_batch * recording.accumulation * kColours * recording.image_size *
                          recording.image_size * static_cast<int64_t>(sizeof(float));
    needs.loader = 3 * batch;
    needs.pinned = machine_option.gpu ? 2 * batch : 0;
  }
  return forecast_host_memory(recording, needs);
}

double evaluation_sample(const ForecastContext& context, const MachineOption& machine_option, const Levers& levers,
                         const Trial& trial) {
  const int64_t samples = context.workload.work.validation_samples;
  if (!context.evaluation || !trial.time || samples == 0) return 0;
  double sum = 0, epochs = 0;
  for (const PhaseWork& phase : phases_of(context.workload)) {
    TraceKey trace_key = pass_key(context, machine_option, levers, trial);
    if (phase.caches) trace_key.phase = phase.trace;
    const double upload = phase.caches ? 0 : upload_seconds(context, machine_option, 1);
    sum += phase.epochs * (pass_sample(context, machine_option, trace_key) + upload);
    epochs += phase.epochs;
  }
  return sum / epochs * static_cast<double>(run_requirements(context, machine_option, levers).busiest_rows) /
         static_cast<double>(samples);
}

}  // namespace lockstep::forecast
