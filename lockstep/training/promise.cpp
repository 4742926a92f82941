// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/promise.h"

#include <vector>

#include "lockstep/base/error.h"
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
Json settled(const Json& planned, const spec::Job& running) {
  spec::Job job = spec::parse_job(planned);
  if (job.data.order == spec::SampleOrder::by_storage) job.data.order = running.data.order;
  return spec::to_json(job);
}

// The job that an option is about: the plan's, or that with the option's own changes.
const Json& job_of(const Json& plan, const Json& option) {
  const Json* changed = option.find("job");
  return changed && changed->is_object() ? *changed : plan.at("job");
}

bool is_here(const Json& option, const Standing& standing) {
  const int64_t gpus = option.int_or("gpus", 0);
  const Json* id = option.find(standing.device == "cuda" ? "gpu" : "cpu");
  const bool named = id && id->is_string();
  if (standing.device == "cpu") {
    // A processor that the catalogue does not know cannot be told from another: the plan's word counts.
    return gpus == 0 && standing.ranks == 1 && (!named || standing.id.empty() || id->as_string() == standing.id);
  }
  return gpus == standing.ranks && named && id->as_string() == standing.id;
}

std::optional<double> number_at(const Json& object, std::string_view key) {
  const Json* value = object.is_object() ? object.find(key) : nullptr;
  return value && value->is_number() ? std::optional(value->as_double()) : std::nullopt;
}

Promise read_promise(const Json& option, int64_t index, const Standing& standing) {
  Promise promise;
  promise.option = index;
  promise.title = option.string_or("title", option.string_or("machine", "?"));
  if (const Json* step = option.find("step_seconds")) {
    promise.step_seconds = number_at(*step, "value");
    promise.step_low = number_at(*step, "low");
    promise.step_high = number_at(*step, "high");
  }
  promise.samples_per_second = number_at(option, "samples_per_second");
  if (const Json* memory = option.find("memory")) {
    promise.memory_bytes = number_at(*memory, standing.device == "cuda" ? "peak_reserved_bytes" : "total_bytes");
  }
  promise.epoch_seconds = number_at(option, "epoch_seconds");
  promise.total_seconds = number_at(option, "total_seconds");
  promise.start_up_seconds = number_at(option, "start_up_seconds");
  if (promise.total_seconds) {  // the clock of a run begins after its start-up
    *promise.total_seconds -= number_at(option, "jobs").value_or(1) * promise.start_up_seconds.value_or(0);
  }
  promise.save_seconds = number_at(option, "save_seconds");
  if (const Json* classes = option.find("time_by_class"); classes && classes->is_object()) {
    for (const auto& member : classes->members()) promise.by_class[member.key] = member.value.as_double();
  }
  return promise;
}

[[noreturn]] void refuse_job(const Json& plan, const Difference& difference) {
  throw Error(Blame::user,
              text(plan.source(), " is the plan of another job: ", difference.key, " is ", difference.planned,
                   " there and ", difference.running, " here"),
              text("plan this job, or train the planned one: --set ", difference.key, "=", difference.planned));
}

[[noreturn]] void refuse_place(const Json& plan, const Standing& standing) {
  std::vector<std::string> titles;
  for (const auto& option : plan.at("options").items()) {
    const std::string title = option.string_or("title", option.string_or("machine", "?"));
    if (titles.empty() || titles.back() != title) titles.push_back(title);
  }
  if (titles.size() > 8) titles.resize(8), titles.emplace_back("...");
  const std::string ranks = text(standing.ranks, standing.ranks == 1 ? " rank" : " ranks");
  throw Error(
      Blame::user,
      text(plan.source(), " has no option for ", ranks, " on ", standing.device, " (", standing.name,
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
  const auto cards = site::read_gpus().devices;
  if (static_cast<size_t>(index) < cards.size()) standing.name = cards[static_cast<size_t>(index)].name;
  if (const auto* row = catalogue.gpu_by_driver_name(standing.name)) standing.id = row->id;
  return standing;
}

Promise find_promise(const Json& plan, const spec::Job& job, const Standing& standing) {
  const Json* options = plan.is_object() ? plan.find("options") : nullptr;
  const Json* planned = plan.is_object() ? plan.find("job") : nullptr;
  if (!options || !options->is_array() || !planned || !planned->is_object()) {
    throw Error(Blame::user, text(plan.source(), " is not the plan of a job"),
                "make one: lockstep plan JOB --on here --json plan.json");
  }
  const Json running = spec::to_json(job);
  bool same_job = false;
  for (size_t i = 0; i < options->items().size(); ++i) {
    const Json& option = options->items()[i];
    if (first_difference(settled(job_of(plan, option), job), running)) continue;
    same_job = true;
    if (is_here(option, standing)) return read_promise(option, static_cast<int64_t>(i), standing);
  }
  const auto difference = first_difference(settled(*planned, job), running);
  if (!same_job && difference) refuse_job(plan, *difference);
  refuse_place(plan, standing);
}

}  // namespace lockstep::training
