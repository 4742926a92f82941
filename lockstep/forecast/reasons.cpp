// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/reasons.h"

#include <cmath>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/run/capture.h"

namespace lockstep::forecast {
namespace {

using base::text;

void explain_gpu(const ForecastContext& context, Option& option) {
  const catalogue::Gpu& gpu = *option.machine_option.gpu;
  auto& why = option.why;
  if (gpu.vendor != "NVIDIA") {
    why.push_back(text("planned only: CUDA does not drive ", gpu.vendor, " GPUs"));
  } else if (gpu.last_cuda) {
    why.push_back(text("planned only: no current CUDA drives it, the last one was ", *gpu.last_cuda));
  }
  const bool sixteen = option.levers.precision == "bf16";
  if (sixteen && gpu.tflops_bf16.value_or(1) == 0) {
    why.push_back(text("has no bf16 units: such products run at the speed of fp32 at best; --set training.precision=",
                       gpu.tflops_fp16.value_or(0) > 0 ? "amp" : "fp32"));
  }
  if (option.levers.precision == "tf32" && gpu.tflops_tf32.value_or(1) == 0) {
    why.push_back("has no tf32 units: it runs in fp32");
  }
  const bool assumed = option.machine_option.nodes() > 1 && option.machine_option.machine.links.inter.rate == 0;
  if (assumed) {
    why.push_back(text("the link between nodes is not stated: ", base::format_rate(context.assumptions.inter_rate),
                       " assumed (--assume inter_rate=...)"));
  }
}

void explain_fit(Option& option) {
  const Trial& trial = option.trial;
  const auto needed = static_cast<double>(trial.memory.total);
  const auto there = static_cast<double>(trial.capacity);
  if (trial.capacity == 0) {
    option.why.push_back(text("needs ", base::format_bytes(needed), " of main memory; the machine states none"));
  } else if (trial.fits) {
    option.why.push_back(text("fits: ", base::format_bytes(needed), " of ", base::format_bytes(there), ", ",
                              base::format_bytes(there - needed), " to spare"));
  } else {
    option.why.push_back(text("does not fit: needs ", base::format_bytes(needed), " of ", base::format_bytes(there),
                              ", ", base::format_bytes(needed - there), " too much, at ", trial.memory.moment));
  }
  if (trial.fits && trial.capacity > 0 && !fits_safely(trial)) {
    option.why.push_back(text("it is within ", base::percent(1 - kSafeShare, 0),
                              " of the limit, where a forecast may err: try it before you rely on it"));
  }
  if (trial.memory.retries > 0) {
    option.why.push_back(text("only by giving cached memory back ", trial.memory.retries, " times: it will be slow"));
  }
  if (trial.refusal) {
    option.why.push_back(text("train refuses it: ", trial.refusal->what(), "; fix: ", trial.refusal->fix()));
  }
  const int64_t node = option.machine_option.machine.memory_per_node;
  if (!option.host_fits()) {
    option.why.push_back(
        text("the node's main memory is too small: ", base::format_bytes(static_cast<double>(option.host.total)),
             " of ", base::format_bytes(static_cast<double>(node))));
  }
}

void explain_time(Option& option) {
  const Trial& trial = option.trial;
  if (option.levers.zero == 3 && option.machine_option.ranks() > 1) {
    option.why.push_back("ZeRO-3 runs every block again in backward, from weights gathered twice a pass");
  }
  if (!trial.time) {
    option.why.push_back(text("its speed is not known: ", trial.no_time));
    return;
  }
  const TimeForecast& time = *trial.time;
  option.why.insert(option.why.end(), time.notes.begin(), time.notes.end());
  if (time.host_bound) {
    option.why.push_back(text("host-bound: the launching thread takes ", base::format_duration(time.host),
                              " of a step, the GPU ", base::format_duration(time.device),
                              ": a larger micro-batch helps; the interval is wider, since processors differ (--assume "
                              "host=1.5: one that takes half as long again)"));
  }
  if (time.exposed > 0.1 * time.step.value) {
    option.why.push_back(text(base::percent(time.exposed / time.step.value, 0), " of a step waits for the network"));
  }
  // A core or two every node has.
  if (option.loader && option.pace.loader_rate == 0 && option.machine_option.gpu && option.loader->cores_needed > 2) {
    option.why.push_back(text("wants ", base::fixed(std::ceil(option.loader->cores_needed), 0),
                              " cores that decode and ", base::format_rate(option.read_rate_wanted()),
                              " read; the node does not state its cores"));
  }
  if (!option.length) return;
  const Length& length = *option.length;
  if (length.loader_bound) {
    option.why.push_back(text("decoding is slower than the step: ", base::fixed(option.pace.loader_rate, 0), " of ",
                              base::fixed(option.samples_per_second, 0), " samples/s; ",
                              base::fixed(option.loader->cores_needed, 0), " cores would keep up"));
  }
  if (length.jobs == 0) {
    option.why.push_back(text("a walltime of ", base::format_duration(option.pace.walltime),
                              " is shorter than start-up, restore, one step and two saves, ",
                              base::format_duration(length.shortest_walltime), ": no job would make progress"));
  }
}

// Only one rank alone has a graph.
void explain_graph(const ForecastContext& context, Option& option) {
  if (!option.machine_option.gpu || option.machine_option.ranks() > 1) return;
  if (const int64_t bytes = option.trial.memory.beside_graph; bytes > 0) {
    option.why.push_back(
        text("batches of another shape (the smaller last one of an epoch, other canvases) run beside the "
             "CUDA graph, and take ",
             base::format_bytes(static_cast<double>(bytes)), " besides"));
  }
  for (const PhaseWork& phase : phases_of(context.workload)) {
    if (phase.graph || phase.caches) continue;
    option.why.push_back(text(phase.name.empty() ? "the run" : phase.name,
                              " is too short for a CUDA graph, which takes ", run::kEagerSteps + 1,
                              " full batches: counted as steps whose operators are launched one by one"));
  }
}

void explain_slices(const ForecastContext& context, Option& option) {
  const int64_t slices = context.workload.virtual_ranks;
  if (slices == 0) return;
  if (slices % option.machine_option.ranks() != 0) {
    option.why.push_back(text(slices, " slices (training.virtual_ranks) do not divide by ",
                              option.machine_option.ranks(), " ranks: counted as on ", slices / option.trial.passes));
  }
  if (!option.machine_option.gpu) {
    option.why.push_back(
        "slices are counted one after the other; on processors some run at once, each in memory of its "
        "own");
  }
}

void explain_shares(const ForecastContext& context, Option& option) {
  const int64_t batch = work_at(context, option.machine_option).global_batch;
  const int64_t ranks = option.machine_option.ranks();
  if (batch % ranks != 0) {
    option.why.push_back(text(batch, " samples do not divide by ", ranks, " ranks: ", batch % ranks, " of them take ",
                              option.trial.rows, ", the others ", option.trial.rows - 1));
  }
  if (context.workload.weak && ranks > 1) {
    option.why.push_back(text("a recording has a fixed share: the global batch becomes ", batch));
  }
}

// What each phase takes, where they differ.
void explain_phases(const ForecastContext& context, Option& option) {
  for (const PhaseTrial& phase : option.trial.phases) {
    std::string words = text(context.workload.phases[phase.phase].name, ": ");
    if (phase.time) words += text(base::format_duration(phase.time->step.value), " a step, ");
    words += base::format_bytes(static_cast<double>(phase.memory));
    if (phase.fill > 0) words += text(", and ", base::format_duration(phase.fill), " until its features are cached");
    option.why.push_back(std::move(words));
  }
}

void explain_estimates(const ForecastContext& context, Option& option) {
  const auto& names = find_recording(context, option).estimated;
  if (names.empty()) return;
  option.why.push_back(text("the simulation has no rule of ", base::join(names, ", "),
                            ": counted by the bytes of the tensors; the step's interval is wider for it"));
}

}  // namespace

void add_reasons(const ForecastContext& context, Option& option) {
  if (option.machine_option.gpu) explain_gpu(context, option);
  explain_fit(option);
  explain_time(option);
  explain_phases(context, option);
  explain_graph(context, option);
  explain_estimates(context, option);
  explain_slices(context, option);
  explain_shares(context, option);
}

}  // namespace lockstep::forecast
