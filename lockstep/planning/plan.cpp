// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/plan.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/forecast/run_rules.h"
#include "lockstep/loader/collections.h"
#include "lockstep/planning/recorded.h"
#include "lockstep/planning/wording.h"
#include "lockstep/run/capture.h"
#include "lockstep/run/feeding.h"
#include "lockstep/run/most_checkpoints.h"
#include "lockstep/run/order.h"

namespace lockstep::planning {
namespace {

using base::Blame;
using base::Error;
using base::text;
using forecast::Levers;
using forecast::MachineOption;
using forecast::Option;
using forecast::Recording;
using forecast::Recordings;
using forecast::TraceKey;

// An option found by the search is worth a line when it saves this share of the time.
constexpr double kWorthwhile = 0.05;
constexpr size_t kMostExplained = 12;  // machine options; with more of them nobody reads so much about each

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

// Traces what is asked for, and keeps the time it takes.
class JobTracer {
 public:
  JobTracer(spec::Job job, Tracer* tracer) : job_(std::move(job)), tracer_(tracer) {}

  Recording step(const TraceKey& trace_key) {
    const Stopwatch watch;
    Recording recording = tracer_->step(job_for(trace_key), rank_of(trace_key));
    seconds_ += watch.seconds();
    return recording;
  }
  Recording evaluation(const TraceKey& trace_key) {
    const Stopwatch watch;
    Recording recording = tracer_->evaluation(job_for(trace_key), rank_of(trace_key));
    seconds_ += watch.seconds();
    return recording;
  }
  double seconds() const { return seconds_; }

 private:
  // How many there are changes no operator and no byte, unless they share what they keep or norm in step.
  static int64_t ranks_of(const TraceKey& trace_key) {
    return trace_key.ranks > 0 ? trace_key.ranks : trace_key.reduced ? 2 : 1;
  }
  SimulatedRank rank_of(const TraceKey& trace_key) const {
    SimulatedRank rank{.attention = trace_key.attention,
                       .ranks = ranks_of(trace_key),
                       .rows = trace_key.micro_batch * trace_key.passes,
                       .evaluation_rows = trace_key.evaluation_rows,
                       .fills = trace_key.fills,
                       .graph = trace_key.graph};
    if (trace_key.phase >= 0) rank.phase = job_.training.phases[static_cast<size_t>(trace_key.phase)];
    return rank;
  }
  spec::Job job_for(const TraceKey& trace_key) const {
    spec::Job job =
        forecast::with_levers(job_, {trace_key.precision, trace_key.recompute, trace_key.micro_batch, trace_key.zero});
    job.training.global_batch = trace_key.micro_batch * trace_key.passes * ranks_of(trace_key);
    job.training.virtual_ranks = trace_key.slices;
    if (trace_key.slices > 0) job.training.micro_batch = 0;
    return job;
  }

  spec::Job job_;
  Tracer* tracer_;
  double seconds_ = 0;
};

// An image of bytes becomes one of floats besides.
forecast::SampleBytes sample_bytes_of(const spec::Job& job) {
  const bool fed = run::is_fed(job.data.pixels, /*on_gpu=*/true);
  forecast::SampleBytes sample{.ahead = fed};
  for (const task::Field& field : task::make_task(job)->fields()) {
    const bool shown = field.kind == task::Field::Kind::image && field.element == task::Element::uint8;
    sample.sent += field.bytes();
    sample.kept += (fed ? run::kFeederSlots : 1) * field.bytes() +
                   (shown ? field.count() * task::bytes_of(task::Element::fp32) : 0);
  }
  return sample;
}

std::string phase_name(const spec::Phase& phase, size_t index) {
  return text("phase ", index + 1, ", ",
              phase.train_from.empty() ? "all blocks" : text("from '", phase.train_from, "' on"),
              phase.cache_features ? ", on cached features" : "", phase.freeze_norm ? ", batch norms held" : "");
}

// A phase that trains the same blocks in the same way as one before it has its trace.
std::vector<forecast::PhaseWork> phases_of(const std::vector<spec::Phase>& phases) {
  const auto same_step = [](const spec::Phase& a, const spec::Phase& b) {
    return a.train_from == b.train_from && a.cache_features == b.cache_features && a.cache_flips == b.cache_flips &&
           a.freeze_norm == b.freeze_norm;
  };
  std::vector<forecast::PhaseWork> all;
  for (size_t i = 0; i < phases.size(); ++i) {
    const spec::Phase& phase = phases[i];
    const auto first =
        std::find_if(phases.begin(), phases.end(), [&](const auto& one) { return same_step(one, phase); });
    all.push_back({.name = phase_name(phase, i),
                   .trace = same_step(phase, {}) ? -1 : first - phases.begin(),
                   .epochs = phase.epochs,
                   .caches = phase.cache_features});
  }
  return all;
}

// Samples on the largest canvas that have as many pixels as a batch on the one behind it; 0: there is one canvas.
int64_t batch_on_the_next_canvas(const spec::Job& job) {
  int64_t pixels = 0;
  for (const std::string& canvas : job.instances.canvases) {
    const auto size = spec::image_size_from(canvas);
    if (size) pixels = std::max(pixels, size->pixels());
  }
  const int64_t largest = job.data.image_size.pixels();
  return (job.training.global_batch * pixels + largest - 1) / largest;
}

// Which phases have steps enough for a CUDA graph, and what runs beside it. A phase whose length nobody knows is taken
// to be a long one of full batches, and one whose step never is captured has nothing to miss.
void find_graphs(const spec::Job& job, const forecast::RunAmount& work, std::vector<forecast::PhaseWork>& phases) {
  if (job.training.kernels != spec::Kernels::fused || job.training.virtual_ranks > 0) return;
  const int64_t an_epoch = work.samples > 0 ? run::num_steps(work.samples, work.global_batch) : 0;
  const std::vector<int64_t> steps = run::phase_steps(work.span, an_epoch);
  int64_t begin = 0;
  for (size_t i = 0; i < phases.size(); ++i) {
    const int64_t end = begin + steps[i];
    if (steps[i] == 0) continue;
    phases[i].graph = run::reaches_capture(begin, end, work.samples, work.global_batch);
    phases[i].odd =
        std::max(run::odd_batch(begin, end, work.samples, work.global_batch), batch_on_the_next_canvas(job));
    begin = end;
  }
}

forecast::Workload workload_of(const PlanRequest& request, const spec::Job& job) {
  forecast::Workload workload;
  workload.work = forecast::run_amount_of(job, request.lengths.samples, request.lengths.validation_samples);
  if (job.checkpoint.every_epochs <= 0) workload.mean_time_between_failures = job.checkpoint.mean_time_between_failures;
  workload.virtual_ranks = job.training.virtual_ranks;
  workload.replay_every = job.training.replay_every;
  workload.sync_norm = job.training.batch_norm == spec::BatchNorm::sync;
  workload.levers = {name_of(job.training.precision), job.training.recompute, job.training.micro_batch,
                     job.training.zero};
  workload.image_pixels = job.data.image_size.pixels();
  workload.walltime = job.limits.walltime;
  workload.decodes = !request.recording && job.data.train != "synthetic" && task::make_task(job)->main_member().empty();
  if (!request.recording) {
    workload.phases = phases_of(job.training.phases);
    find_graphs(job, workload.work, workload.phases.empty() ? workload.whole : workload.phases);
    workload.sample = sample_bytes_of(job);
    const int64_t samples = request.lengths.samples;
    const int64_t validation_samples = request.lengths.validation_samples;
    forecast::NetworkSays network{request.tracer->features(job, samples + validation_samples),
                                  request.tracer->norm_check()};
    workload.rules = std::make_shared<forecast::RunRules>(job, samples, validation_samples, std::move(network));
    return workload;
  }
  const Recording& recording = *request.recording;
  workload.weak = true;
  workload.virtual_ranks = 0;
  workload.work.global_batch = recording.micro_batch * recording.accumulation;
  workload.levers = {recording.precision, {}, 0};
  workload.image_pixels = recording.image_size * recording.image_size;
  workload.sample.kept = workload.sample.sent = 3 * workload.image_pixels * static_cast<int64_t>(sizeof(float));
  return workload;
}

void check_ranks(const PlanRequest& request) {
  if (request.recording) return;
  const int64_t batch = request.job.training.global_batch;
  const int64_t slices = request.job.training.virtual_ranks;
  for (const auto& machine_option : request.machine_options) {
    if (slices > 0 && machine_option.ranks() > slices) {
      throw Error(Blame::user,
                  text(machine_option.ranks(), " ranks share ", slices, " slices (training.virtual_ranks)"),
                  text("--gpus ", slices, " or fewer, or more training.virtual_ranks"));
    }
    if (machine_option.ranks() <= batch) continue;
    throw Error(Blame::user,
                text("a global batch of ", batch, " cannot be divided among the ", machine_option.ranks(), " GPUs of ",
                     machine_option.name, ": ", machine_option.ranks() - batch, " of them would have nothing to do"),
                text("--gpus ", batch, " or fewer, or --set training.global_batch=", machine_option.ranks()));
  }
}

class Planner {
 public:
  Planner(const PlanRequest& request, const forecast::ForecastContext& context)
      : request_(request), context_(context) {}

  void add_options(std::vector<Option>& options) {
    for (const auto& machine_option : request_.machine_options) {
      options.push_back(forecast::forecast_option(context_, machine_option, context_.workload.levers));
      if (request_.search && !request_.recording) add_found(options);
    }
  }

  // With every lever at its end, on the largest GPU of those on which the job does not fit.
  std::optional<LeastMemory> least_memory(const std::vector<Option>& options) {
    const Option* largest = nullptr;
    for (const auto& option : options) {
      if (option.trial.fits) return std::nullopt;
      if (option.machine_option.gpu && (!largest || option.trial.capacity > largest->trial.capacity)) largest = &option;
    }
    if (!largest || !request_.search || request_.recording) return std::nullopt;
    const forecast::Reach reach = reach_of(largest->machine_option);
    std::optional<LeastMemory> least;
    for (const Levers& levers : ends_of(reach, largest->machine_option)) {
      const auto trial =
          forecast::try_levers(context_, largest->machine_option, levers, forecast::Depth::time_if_it_fits);
      if (trial.refusal || (least && trial.memory.total >= least->bytes)) continue;
      least.emplace().bytes = trial.memory.total;
      least->with.levers = levers;
      least->with.changes = forecast::list_changes(context_.workload.levers, levers);
    }
    return least;
  }

 private:
  // As few samples a pass as train takes, with and without recomputation, whole and cut over the ranks.
  std::vector<Levers> ends_of(const forecast::Reach& reach, const MachineOption& machine_option) {
    Levers levers = context_.workload.levers;
    levers.precision = reach.precisions.back();
    levers.data_memory = context_.workload.rules->requirements(machine_option, levers).data_memory;
    constexpr int64_t kFew = 4;  // a norm may want more than one
    for (levers.micro_batch = 1; reach.micro_batch && levers.micro_batch <= kFew; levers.micro_batch *= 2) {
      if (!context_.workload.rules->requirements(machine_option, levers).refusal) break;
    }
    if (!reach.micro_batch || levers.micro_batch > kFew) levers.micro_batch = context_.workload.levers.micro_batch;
    std::vector<Levers> all{levers};
    if (reach.recompute) all.push_back(levers), all.back().recompute = {"all"};
    if (reach.zero > 0) {
      all.push_back(all.back());
      all.back().zero = reach.zero;
      if (reach.zero == 3) all.back().recompute.clear();  // it recomputes by itself
    }
    return all;
  }

  // More GPUs of the same kind, each with a smaller share: the job's own way to fit, without a lever.
  void explain_more_gpus(Option& option) const {
    if (option.trial.fits || !option.machine_option.gpu || request_.machine_options.size() > kMostExplained) return;
    MachineOption machine_option = option.machine_option;
    for (machine_option.gpus *= 2;
         machine_option.gpus <= machine_option.per_node && machine_option.gpus <= option.trial.rows;
         machine_option.gpus *= 2) {
      const auto trial =
          forecast::try_levers(context_, machine_option, option.levers, forecast::Depth::time_if_it_fits);
      if (!trial.fits || trial.refusal) continue;
      option.why.push_back(text("as written it fits on ", machine_option.gpus, " of them, with ",
                                base::format_bytes(static_cast<double>(trial.memory.total)), " each: --gpus ",
                                machine_option.gpus));
      return;
    }
  }

  // Behind the job as written what makes it fit, or what makes it faster.
  void add_found(std::vector<Option>& options) {
    explain_more_gpus(options.back());
    const MachineOption machine_option = options.back().machine_option;
    const Levers& written = context_.workload.levers;
    const int64_t fixed = forecast::fixed_bytes(options.back().trial.memory);
    forecast::Reach reach = reach_of(machine_option);
    if (!options.back().trial.fits && fixed > options.back().trial.capacity && machine_option.gpu) {
      reach.plain = false;
      if (reach.zero == 0 || written.zero > 0) {
        options.back().why.push_back(
            text("no lever of the step helps: weights, optimizer and driver alone take ",
                 base::format_bytes(static_cast<double>(fixed)),
                 machine_option.ranks() == 1 ? "; several GPUs can share them (training.zero)" : ""));
        return;
      }
    }
    // Larger loaders are no lever of the step: where train asks for them they are given.
    Levers start = written;
    start.data_memory = context_.workload.rules->requirements(machine_option, written).data_memory;
    const auto find_savings = [&](const TraceKey& trace_key) {
      return forecast::block_savings(context_.recordings.of(trace_key));
    };
    auto found = forecast::search(start, options.back().trial.rows, reach, find_savings, [&](const Levers& levers) {
      if (context_.workload.rules->requirements(machine_option, levers).refusal)
        return forecast::Trial{};  // before anything is traced
      if (levers == written) return options.back().trial;
      auto trial = forecast::try_levers(context_, machine_option, levers, forecast::Depth::time_if_it_fits);
      if (machine_option.gpu) trial.fits = forecast::fits_safely(trial);
      return trial;
    });
    Option& as_written = options.back();
    if (!found) {
      if (!as_written.trial.fits && request_.levers.size() < choices_of(forecast::Lever{}).size()) {
        std::vector<std::string> names;
        for (const auto lever : request_.levers) names.push_back(name_of(lever));
        as_written.why.push_back(text("does not fit with ", base::join(names, ", "), " alone"));
      } else if (!as_written.trial.fits) {
        as_written.why.push_back(machine_option.ranks() == 1
                                     ? "no lever of the step makes it fit on one; several GPUs can share weights, "
                                       "gradients and optimizer state (training.zero)"
                                     : "no lever of the step makes it fit");
      }
      return;
    }
    const auto changes = forecast::list_changes(written, found->levers);
    if (changes.empty()) return;
    const bool runs = as_written.trial.fits && !as_written.trial.refusal;
    const bool faster = found->trial.time && as_written.trial.time &&
                        found->trial.time->step.value < (1 - kWorthwhile) * as_written.trial.time->step.value;
    if (runs && !faster) return;
    if (!runs) {
      as_written.why.push_back(
          text("with ", base::join(changes, " "), as_written.trial.refusal ? " it runs" : " it fits"));
    }
    Option option = forecast::forecast_option(context_, machine_option, found->levers, std::move(found->trial));
    option.as_written = false;
    option.changes = changes;
    options.push_back(std::move(option));
  }

  // Fewer bits only where the user asked for none; another format where the GPU has no units for the one asked for.
  forecast::Reach reach_of(const MachineOption& machine_option) const {
    forecast::Reach reach = whole_reach_of(machine_option);
    const auto may = [&](forecast::Lever lever) {
      return std::find(request_.levers.begin(), request_.levers.end(), lever) != request_.levers.end();
    };
    if (!may(forecast::Lever::precision)) reach.precisions = {context_.workload.levers.precision};
    reach.micro_batch = reach.micro_batch && may(forecast::Lever::micro_batch);
    reach.recompute = reach.recompute && may(forecast::Lever::recompute);
    if (!may(forecast::Lever::zero)) reach.zero = 0;
    return reach;
  }
  forecast::Reach whole_reach_of(const MachineOption& machine_option) const {
    const std::string& written = context_.workload.levers.precision;
    const auto has =
        forecast::precisions_for(machine_option.gpu ? &*machine_option.gpu : nullptr, choices_of(spec::Precision{}));
    const auto there = [&](const char* name) { return std::find(has.begin(), has.end(), name) != has.end(); };
    forecast::Reach reach;
    reach.recompute = machine_option.gpu.has_value();
    reach.micro_batch = context_.workload.virtual_ranks == 0;  // train refuses both at once, as it does ZeRO-2 and 3
    // A moving average follows whole weights.
    if (machine_option.gpu && machine_option.ranks() > 1) reach.zero = request_.job.training.ema_decay > 0 ? 2 : 3;
    if (context_.workload.virtual_ranks > 0) reach.zero = std::min<int64_t>(reach.zero, 1);
    if (!there(written.c_str())) {
      reach.precisions = {there("amp") ? "amp" : "fp32"};
      return reach;
    }
    reach.precisions = {written};
    if (written != "fp32") return reach;
    if (there("tf32")) reach.precisions.emplace_back("tf32");
    if (there("bf16") || there("amp")) reach.precisions.emplace_back(there("bf16") ? "bf16" : "amp");
    return reach;
  }

  const PlanRequest& request_;
  const forecast::ForecastContext& context_;
};

bool has_convolutions(const Recording& recording) {
  return std::any_of(recording.operators.begin(), recording.operators.end(),
                     [](const auto& op) { return op.kind == forecast::OperatorClass::convolution; });
}

void describe(const Recording& recording, Plan& plan) {
  plan.title = recording.title;
  plan.parameters = recording.parameters;
  plan.checkpoint_bytes = recording.checkpoint_bytes;
  plan.recording = recording;
}

}  // namespace

Lengths find_lengths(const spec::Job& job, int64_t samples, int64_t validation_samples) {
  const auto task = task::make_task(job);
  Lengths lengths{samples, validation_samples, task->num_outputs(), {}};
  if (job.data.train == "synthetic") {
    if (samples == 0) lengths.samples = job.data.samples;
    if (validation_samples == 0 && job.data.validate == "synthetic") lengths.validation_samples = job.data.samples;
    return lengths;
  }
  const auto there = [](const std::string& folder) { return std::filesystem::is_directory(folder); };
  if (lengths.samples == 0) lengths.samples = job.data.samples;
  if (there(job.data.train) && (lengths.samples == 0 || lengths.classes == 0)) {
    const auto found = loader::scan_for(job, job.data.train);
    if (lengths.samples == 0) lengths.samples = static_cast<int64_t>(found.samples.size());
    if (lengths.classes == 0) lengths.classes = task::make_task(job, found.classes)->num_outputs();
  }
  if (validation_samples == 0 && there(job.data.validate)) {
    lengths.validation_samples = static_cast<int64_t>(loader::scan_for(job, job.data.validate).samples.size());
  }
  if (lengths.classes == 0) {
    throw Error(Blame::user, text("model.classes is not stated, and ", job.data.train, " is not here to be counted"),
                "for example --set model.classes=1000");
  }
  if (lengths.samples == 0 && job.training.steps == 0) {
    lengths.notes.push_back(text(job.data.train, " is not here: hours, jobs and money need --samples N"));
  }
  if (lengths.validation_samples == 0 && !job.data.validate.empty()) {
    lengths.notes.push_back(
        text(job.data.validate, " is not here: evaluation is not counted; --validation-samples N counts it"));
  }
  return lengths;
}

int64_t disk_bytes(const Plan& plan, const forecast::Option& option) {
  const int64_t milestones = option.length ? option.length->milestones : 0;
  return plan.checkpoint_bytes *
         run::most_checkpoints(plan.job.checkpoint.keep, !plan.job.data.validate.empty(), milestones);
}

namespace {

// What a step takes on each smaller canvas (instances.canvases), on the first machine. The plan's own figures are of
// the largest, data.image_size, which the first batch of every epoch has.
std::string canvases_text(const PlanRequest& request, const Plan& plan, const catalogue::Catalogue& catalogue,
                          const forecast::Calibration& calibration) {
  std::vector<std::string> each;
  for (const std::string& canvas : plan.job.instances.canvases) {
    PlanRequest one = request;
    one.job.data.image_size = spec::image_size_from(canvas).value_or(plan.job.data.image_size);
    one.job.instances.canvases.clear();
    one.machine_options.resize(1);
    one.search = false;
    const forecast::Trial trial = make_plan(one, catalogue, calibration).options.front().trial;
    const std::string time = trial.time ? text(figure(1000 * trial.time->step.value), " ms") : "";
    each.push_back(text(canvas, " ", time, time.empty() ? "" : ", ", bytes_text(trial.memory.total)));
  }
  return text("every step is counted at ", to_text(plan.job.data.image_size),
              ", the largest canvas; on the smaller ones a step of ", plan.options.front().machine_option.name,
              " takes: ", base::join(each, "; "));
}

}  // namespace

Plan make_plan(const PlanRequest& request, const catalogue::Catalogue& catalogue,
               const forecast::Calibration& calibration) {
  base::ensure(request.tracer || request.recording, "a plan has a tracer or a recording");
  check_ranks(request);
  const Stopwatch watch;
  Plan plan;
  plan.job = request.job;
  plan.recorded = request.recording.has_value();
  if (request.lengths.classes > 0) plan.job.model.classes = request.lengths.classes;
  plan.assumptions = request.assumptions;
  plan.notes = request.lengths.notes;
  plan.workload = workload_of(request, plan.job);
  JobTracer tracer(plan.job, request.tracer);
  Recordings steps([&](const TraceKey& trace_key) {
    return request.recording ? recorded_step(*request.recording, trace_key) : tracer.step(trace_key);
  });
  Recordings evaluations([&](const TraceKey& trace_key) { return tracer.evaluation(trace_key); });
  std::optional<forecast::Calibration> other_host;
  if (request.assumptions.host != 1) other_host = calibration.with_host(request.assumptions.host);
  const forecast::ForecastContext context{.catalogue = catalogue,
                                          .calibration = other_host ? *other_host : calibration,
                                          .assumptions = request.assumptions,
                                          .workload = plan.workload,
                                          .recordings = steps,
                                          .evaluation = request.recording ? nullptr : &evaluations};
  Planner planner(request, context);
  planner.add_options(plan.options);
  plan.least = planner.least_memory(plan.options);
  plan.best = forecast::find_best(plan.options);
  forecast::compare(plan.options, plan.best);
  if (!plan.options.empty()) describe(forecast::find_recording(context, plan.options.front()), plan);
  if (!plan.recorded && !plan.options.empty() && !plan.job.instances.canvases.empty())
    plan.notes.push_back(canvases_text(request, plan, catalogue, calibration));
  if (plan.recording && plan.recording->layout == spec::Layout::contiguous && has_convolutions(*plan.recording)) {
    // results/forecast-cells-h200-contiguous.json and results/foreign-h200.json.
    plan.notes.push_back(
        "contiguous images: the scratch memory of convolutions follows a rule; 30 steps of an H200 reserved from 3 % "
        "more to 8 % less than it says (channels-last ones: 4 %)");
  }
  plan.trace_seconds = tracer.seconds();
  plan.forecast_seconds = watch.seconds() - plan.trace_seconds;
  plan.num_traced = steps.num_traced() + evaluations.num_traced();
  return plan;
}

spec::Job changed_job(const Plan& plan, const Option& option) {
  return forecast::with_levers(plan.job, option.levers);
}

}  // namespace lockstep::planning
