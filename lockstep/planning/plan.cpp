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
#include "lockstep/loader/collection.h"
#include "lockstep/planning/recorded.h"
#include "lockstep/run/feeding.h"
#include "lockstep/run/most_checkpoints.h"

namespace lockstep::planning {
namespace {

using base::Blame;
using base::Error;
using base::text;
using forecast::Ask;
using forecast::Levers;
using forecast::Option;
using forecast::Place;
using forecast::Recording;
using forecast::Recordings;

// An option found by the search is worth a line when it saves this share of the time.
constexpr double kWorthwhile = 0.05;
constexpr size_t kMostExplained = 12;  // places; with more of them nobody reads so much about each

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

  Recording step(const Ask& ask) {
    const Stopwatch watch;
    Recording recording = tracer_->step(job_for(ask), rank_of(ask));
    seconds_ += watch.seconds();
    return recording;
  }
  Recording evaluation(const Ask& ask) {
    const Stopwatch watch;
    Recording recording = tracer_->evaluation(job_for(ask), rank_of(ask));
    seconds_ += watch.seconds();
    return recording;
  }
  double seconds() const { return seconds_; }

 private:
  // How many there are changes no operator and no byte, unless they share what they keep or norm in step.
  static int64_t ranks_of(const Ask& ask) { return ask.ranks > 0 ? ask.ranks : ask.reduced ? 2 : 1; }
  static SimulatedRank rank_of(const Ask& ask) {
    return {.attention = ask.attention,
            .ranks = ranks_of(ask),
            .rows = ask.micro_batch * ask.passes,
            .evaluation_rows = ask.evaluation_rows};
  }
  spec::Job job_for(const Ask& ask) const {
    spec::Job job = forecast::with_levers(job_, {ask.precision, ask.recompute, ask.micro_batch, ask.zero});
    job.training.global_batch = ask.micro_batch * ask.passes * ranks_of(ask);
    job.training.virtual_ranks = ask.slices;
    if (ask.slices > 0) job.training.micro_batch = 0;
    return job;
  }

  spec::Job job_;
  Tracer* tracer_;
  double seconds_ = 0;
};

// An image of bytes becomes one of floats besides.
forecast::SampleBytes sample_bytes_of(const spec::Job& job) {
  const bool fed = run::is_fed(job.data.pixels, /*on_card=*/true);
  forecast::SampleBytes sample{.ahead = fed};
  for (const task::Field& field : task::make_task(job)->fields()) {
    const bool shown = field.kind == task::Field::Kind::image && field.element == task::Element::uint8;
    sample.sent += field.bytes();
    sample.kept += (fed ? run::kFeederSlots : 1) * field.bytes() +
                   (shown ? field.count() * task::bytes_of(task::Element::fp32) : 0);
  }
  return sample;
}

forecast::Task task_of(const PlanRequest& request, const spec::Job& job) {
  forecast::Task task;
  task.work = forecast::workload_of(job, request.lengths.samples, request.lengths.validation_samples);
  if (job.checkpoint.every_epochs <= 0) task.mean_time_between_failures = job.checkpoint.mean_time_between_failures;
  task.virtual_ranks = job.training.virtual_ranks;
  task.replay_every = job.training.replay_every;
  task.sync_norm = job.training.batch_norm == spec::BatchNorm::sync;
  task.levers = {name_of(job.training.precision), job.training.recompute, job.training.micro_batch, job.training.zero};
  task.image_pixels = job.data.image_size.pixels();
  task.walltime = job.limits.walltime;
  task.decodes = !request.recording && job.data.train != "synthetic";
  if (!request.recording) {
    task.sample = sample_bytes_of(job);
    const int64_t samples = request.lengths.samples;
    const int64_t validation_samples = request.lengths.validation_samples;
    forecast::NetworkSays network{request.tracer->features(job, samples + validation_samples),
                                  request.tracer->norm_check()};
    task.rules = std::make_shared<forecast::RunRules>(job, samples, validation_samples, std::move(network));
    return task;
  }
  const Recording& recording = *request.recording;
  task.weak = true;
  task.virtual_ranks = 0;
  task.work.global_batch = recording.micro_batch * recording.accumulation;
  task.levers = {recording.precision, {}, 0};
  task.image_pixels = recording.image_size * recording.image_size;
  task.sample.kept = task.sample.sent = 3 * task.image_pixels * static_cast<int64_t>(sizeof(float));
  return task;
}

void check_ranks(const PlanRequest& request) {
  if (request.recording) return;
  const int64_t batch = request.job.training.global_batch;
  const int64_t slices = request.job.training.virtual_ranks;
  for (const auto& place : request.places) {
    if (slices > 0 && place.ranks() > slices) {
      throw Error(Blame::user, text(place.ranks(), " ranks share ", slices, " slices (training.virtual_ranks)"),
                  text("--gpus ", slices, " or fewer, or more training.virtual_ranks"));
    }
    if (place.ranks() <= batch) continue;
    throw Error(Blame::user,
                text("a global batch of ", batch, " cannot be divided among the ", place.ranks(), " GPUs of ",
                     place.name, ": ", place.ranks() - batch, " of them would have nothing to do"),
                text("--gpus ", batch, " or fewer, or --set training.global_batch=", place.ranks()));
  }
}

class Planner {
 public:
  Planner(const PlanRequest& request, const forecast::Ground& ground) : request_(request), ground_(ground) {}

  void add_options(std::vector<Option>& options) {
    for (const auto& place : request_.places) {
      options.push_back(forecast::judge(ground_, place, ground_.task.levers));
      if (request_.search && !request_.recording) add_found(options);
    }
  }

 private:
  // More cards of the same kind, each with a smaller share: the job's own way to fit, without a lever.
  void explain_more_cards(Option& option) const {
    if (option.trial.fits || !option.place.gpu || request_.places.size() > kMostExplained) return;
    Place place = option.place;
    for (place.gpus *= 2; place.gpus <= place.per_node && place.gpus <= option.trial.rows; place.gpus *= 2) {
      const auto trial = forecast::try_levers(ground_, place, option.levers, forecast::Depth::time_if_it_fits);
      if (!trial.fits || trial.refusal) continue;
      option.why.push_back(text("as written it fits on ", place.gpus, " of them, with ",
                                base::format_bytes(static_cast<double>(trial.memory.total)), " each: --gpus ",
                                place.gpus));
      return;
    }
  }

  // Behind the job as written what makes it fit, or what makes it faster.
  void add_found(std::vector<Option>& options) {
    explain_more_cards(options.back());
    const Place place = options.back().place;
    const Levers& written = ground_.task.levers;
    const int64_t fixed = forecast::fixed_bytes(options.back().trial.memory);
    forecast::Reach reach = reach_of(place);
    if (!options.back().trial.fits && fixed > options.back().trial.capacity && place.gpu) {
      reach.plain = false;
      if (reach.zero == 0 || written.zero > 0) {
        options.back().why.push_back(text("no lever of the step helps: weights, optimizer and driver alone take ",
                                          base::format_bytes(static_cast<double>(fixed)),
                                          place.ranks() == 1 ? "; several cards can share them (training.zero)" : ""));
        return;
      }
    }
    const auto found =
        forecast::search(written, options.back().trial.rows, reach, order(place), [&](const Levers& levers) {
          if (ground_.task.rules->says(place, levers).refusal) return forecast::Trial{};  // before anything is traced
          auto trial = forecast::try_levers(ground_, place, levers, forecast::Depth::time_if_it_fits);
          if (levers != written && place.gpu) trial.fits = forecast::fits_safely(trial);
          return trial;
        });
    Option& as_written = options.back();
    if (!found) {
      if (!as_written.trial.fits) {
        as_written.why.push_back(place.ranks() == 1
                                     ? "no lever of the step makes it fit on one; several cards can share weights, "
                                       "gradients and optimizer state (training.zero)"
                                     : "no lever of the step makes it fit");
      }
      return;
    }
    const auto changes = forecast::changes_of(written, found->levers);
    if (changes.empty()) return;
    const bool runs = as_written.trial.fits && !as_written.trial.refusal;
    const bool faster = found->trial.time && as_written.trial.time &&
                        found->trial.time->step.value < (1 - kWorthwhile) * as_written.trial.time->step.value;
    if (runs && !faster) return;
    if (!runs) {
      as_written.why.push_back(
          text("with ", base::join(changes, " "), as_written.trial.refusal ? " it runs" : " it fits"));
    }
    Option option = forecast::judge(ground_, place, found->levers);
    option.as_written = false;
    option.changes = changes;
    options.push_back(std::move(option));
  }

  // Fewer bits only where the user asked for none; another format where the card has no units for the one asked for.
  forecast::Reach reach_of(const Place& place) const {
    const std::string& written = ground_.task.levers.precision;
    const auto has = forecast::precisions_for(place.gpu ? &*place.gpu : nullptr, choices_of(spec::Precision{}));
    const auto there = [&](const char* name) { return std::find(has.begin(), has.end(), name) != has.end(); };
    forecast::Reach reach;
    reach.recompute = place.gpu.has_value();
    reach.micro_batch = ground_.task.virtual_ranks == 0;  // train refuses both at once, as it does ZeRO-2 and 3
    // A moving average follows whole weights.
    if (place.gpu && place.ranks() > 1) reach.zero = request_.job.training.ema_decay > 0 ? 2 : 3;
    if (ground_.task.virtual_ranks > 0) reach.zero = std::min<int64_t>(reach.zero, 1);
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

  const std::vector<forecast::BlockSaving>& order(const Place& place) {
    if (order_.empty() && place.gpu) {
      const Levers& levers = ground_.task.levers;
      Place alone = place;
      alone.gpus = 1;
      const Ask ask{.precision = levers.precision,
                    .recompute = levers.recompute,
                    .attention = forecast::attention_of(&*place.gpu, levers.precision),
                    .micro_batch = levers.micro_batch > 0 ? levers.micro_batch : ground_.task.work.global_batch,
                    .passes = 1,
                    .evaluation_rows = forecast::evaluation_rows(ground_, alone, levers)};
      order_ = forecast::recompute_order(forecast::block_savings(ground_.recordings.of(ask)));
    }
    return order_;
  }

  const PlanRequest& request_;
  const forecast::Ground& ground_;
  std::vector<forecast::BlockSaving> order_;
};

void describe(const Recording& recording, Plan& plan) {
  plan.title = recording.title;
  plan.parameters = recording.parameters;
  plan.checkpoint_bytes = recording.checkpoint_bytes;
  plan.recording = recording;
}

}  // namespace

Lengths lengths_of(const spec::Job& job, int64_t samples, int64_t validation_samples) {
  const auto task = task::make_task(job);
  Lengths lengths{samples, validation_samples, task->num_outputs(), {}};
  if (job.data.train == "synthetic") {
    if (samples == 0) lengths.samples = job.data.samples;
    if (validation_samples == 0 && job.data.validate == "synthetic") lengths.validation_samples = job.data.samples;
    return lengths;
  }
  const auto there = [](const std::string& folder) { return std::filesystem::is_directory(folder); };
  const auto scan = [&](const std::string& folder) {
    return task->learns_classes() ? loader::scan_folder(folder) : loader::scan_images(folder);
  };
  if (lengths.samples == 0) lengths.samples = job.data.samples;
  if (there(job.data.train) && (lengths.samples == 0 || lengths.classes == 0)) {
    const auto found = scan(job.data.train);
    if (lengths.samples == 0) lengths.samples = static_cast<int64_t>(found.samples.size());
    if (lengths.classes == 0) lengths.classes = static_cast<int64_t>(found.classes.size());
  }
  if (validation_samples == 0 && there(job.data.validate)) {
    lengths.validation_samples = static_cast<int64_t>(scan(job.data.validate).samples.size());
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
  plan.task = task_of(request, plan.job);
  JobTracer tracer(plan.job, request.tracer);
  Recordings steps(
      [&](const Ask& ask) { return request.recording ? recorded_step(*request.recording, ask) : tracer.step(ask); });
  Recordings evaluations([&](const Ask& ask) { return tracer.evaluation(ask); });
  const forecast::Ground ground{catalogue, calibration, request.assumptions,
                                plan.task, steps,       request.recording ? nullptr : &evaluations};
  Planner(request, ground).add_options(plan.options);
  plan.best = forecast::best_of(plan.options);
  forecast::compare(plan.options, plan.best);
  if (!plan.options.empty()) describe(forecast::recording_of(ground, plan.options.front()), plan);
  if (!request.job.training.phases.empty()) {
    plan.notes.push_back(
        "phases that freeze blocks or cache features are counted as if the whole network were trained");
  }
  if (plan.recorded || plan.job.model.layout == spec::Layout::contiguous) {
    // results/cells-h200-contiguous.json: -17 % to +9 %, where channels-last ones are within 4 %.
    plan.notes.push_back(
        "the scratch memory of convolutions is known for channels-last images; of contiguous ones a card took up to "
        "17 % more than is said here");
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
