// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/promise.h"

#include <algorithm>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/catalogue/catalogue.h"
#include "lockstep/site/nvml.h"
#include "lockstep/site/processor.h"

namespace lockstep::training {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

// On a processor: how many holes a heap has depends on the order of thousands of blocks (forecast_heap_holes).
constexpr double kHeapTolerance = 0.15;

struct Difference {
  std::string key, planned, running;
};

// The first key, in the order of the documents, in which two resolved jobs differ.
std::optional<Difference> first_difference(const Json& planned, const Json& running, const std::string& prefix = "") {
  for (const auto& member : running.members()) {
    const std::string key = prefix + member.key;
    const Json* before = planned.find(member.key);
    if (before && *before == member.value) continue;
    if (before && before->is_object() && member.value.is_object()) {
      if (auto inside = first_difference(*before, member.value, key + ".")) return inside;
      continue;
    }
    return Difference{key, before ? before->dump(-1) : "absent", member.value.dump(-1)};
  }
  return std::nullopt;
}

// A planned job as the running one would be written. A plan that leaves the order of the samples to the storage holds
// for whichever order the storage led to.
Json settled(spec::Job job, const spec::Job& running) {
  if (job.data.order == spec::SampleOrder::by_storage) job.data.order = running.data.order;
  return spec::to_json(job);
}

bool is_here(const spec::PlanOption& option, const Standing& standing) {
  if (standing.device == "cpu") {
    // A processor that the catalogue does not know cannot be told from another: the plan's word counts.
    return option.gpus == 0 && standing.ranks == 1 &&
           (!option.cpu || standing.id.empty() || *option.cpu == standing.id);
  }
  return option.gpus == standing.ranks && option.gpu == standing.id;
}

Promise read_promise(const spec::PlanOption& option, int64_t index, const Standing& standing) {
  const bool gpu = standing.device == "cuda";
  Promise promise;
  promise.option = index;
  promise.title = option.title;
  if (const auto& step = option.step_seconds) {
    promise.step_seconds = step->value;
    promise.step_low = step->low;
    promise.step_high = step->high;
  }
  for (const spec::PlanPhase& phase : option.phases) {
    PhasePromise& one = promise.phases.emplace_back();
    one.name = phase.name;
    one.features_seconds = phase.features;
    one.memory_bytes = static_cast<double>(phase.memory - (gpu ? option.memory.context + option.memory.nccl : 0));
    if (!phase.step_seconds) continue;
    one.step_seconds = phase.step_seconds->value;
    one.step_low = phase.step_seconds->low;
    one.step_high = phase.step_seconds->high;
  }
  promise.samples_per_second = option.samples_per_second;
  promise.memory_bytes = static_cast<double>(gpu ? option.memory.peak_reserved : option.memory.total);
  if (!gpu) promise.memory_tolerance = kHeapTolerance;
  promise.epoch_seconds = option.epoch_seconds;
  promise.total_seconds = option.total_seconds;
  promise.start_up_seconds = option.start_up_seconds;
  promise.start_up_low = option.start_up_low_seconds;
  promise.start_up_high = option.start_up_high_seconds;
  promise.jobs = std::max<int64_t>(1, option.jobs.value_or(1));
  promise.save_seconds = option.save_seconds;
  if (option.time_by_class) promise.by_class.insert(option.time_by_class->begin(), option.time_by_class->end());
  return promise;
}

[[noreturn]] void refuse_job(const std::string& file, const Difference& difference) {
  throw Error(Blame::user,
              text(file, " is the plan of another job: ", difference.key, " is ", difference.planned, " there and ",
                   difference.running, " here"),
              text("plan this job, or train the planned one: ",
                   base::shell_words({"--set", text(difference.key, "=", difference.planned)})));
}

[[noreturn]] void refuse_machine(const spec::Plan& plan, const std::string& file, const Standing& standing) {
  std::vector<std::string> titles;
  for (const auto& option : plan.options) {
    if (titles.empty() || titles.back() != option.title) titles.push_back(option.title);
  }
  if (titles.size() > 8) titles.resize(8), titles.emplace_back("...");
  const std::string ranks = text(standing.ranks, standing.ranks == 1 ? " rank" : " ranks");
  throw Error(
      Blame::user,
      text(file, " has no option for ", ranks, " on ", standing.device, " (", standing.name,
           standing.id.empty() ? ", which the catalogue does not know" : "", "); it has: ", base::join(titles, "; ")),
      standing.device == "cuda" ? text("plan for it: lockstep plan JOB --on here --gpus ", standing.ranks)
      : standing.ranks > 1      ? "processors are planned for one rank: leave --ranks out, or --plan"
                                : "plan for it: lockstep plan JOB --on here");
}

}  // namespace

Standing standing_here(const std::string& device, int64_t index, int64_t ranks) {
  const catalogue::Catalogue catalogue = catalogue::load_catalogue();
  Standing standing{.device = device, .name = {}, .id = {}, .ranks = ranks};
  if (device == "cpu") {
    standing.name = site::read_processor().model;
    if (const auto* row = catalogue.cpu_by_model_name(standing.name)) standing.id = row->id;
    return standing;
  }
  if (const auto gpu = site::read_cuda_gpu(index)) standing.name = gpu->name;
  if (const auto* row = catalogue.gpu_by_driver_name(standing.name)) standing.id = row->id;
  return standing;
}

Promise find_promise(const spec::Plan& plan, const std::string& file, const spec::Job& job, const Standing& standing) {
  if (!plan.job) {
    throw Error(Blame::user, text(file, " is not the plan of a job"),
                "make one: lockstep plan JOB --on here --json plan.json");
  }
  const Json running = spec::to_json(job);
  bool same_job = false;
  for (size_t i = 0; i < plan.options.size(); ++i) {
    const spec::PlanOption& option = plan.options[i];
    if (first_difference(settled(plan.job_of(option), job), running)) continue;
    same_job = true;
    if (is_here(option, standing)) return read_promise(option, static_cast<int64_t>(i), standing);
  }
  const auto difference = first_difference(settled(*plan.job, job), running);
  if (!same_job && difference) refuse_job(file, *difference);
  refuse_machine(plan, file, standing);
}

}  // namespace lockstep::training
