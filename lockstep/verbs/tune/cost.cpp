// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/tune/cost.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/site/command.h"

namespace lockstep::verbs::tune {

using base::text;
using lockstep::tune::TrialCost;

std::vector<std::string> sets_of_rank(const spec::Job& job, std::vector<std::string> sets, int64_t ranks) {
  if (ranks < 2) return sets;
  const int64_t batch = spec::parse_job(spec::changed_json(job), sets).training.global_batch;
  sets.push_back(text("training.global_batch=", (batch + ranks - 1) / ranks));
  return sets;
}

TrialCost cost_of(const spec::Plan& plan, const TrialPlace& place) {
  TrialCost cost;
  const auto found = std::find_if(plan.options.begin(), plan.options.end(), [&](const spec::PlanOption& option) {
    return option.gpus == place.gpus && option.as_written;
  });
  if (found == plan.options.end()) return cost;
  const int64_t needed = found->gpus > 0 ? found->host_memory.total : found->memory.total * place.ranks;
  const int64_t share = place.memory / place.workers;
  if (!found->fits) {
    cost.feasible = false;
    cost.why_not = text("it needs ", base::format_bytes(static_cast<double>(found->memory.total)));
  } else if (share > 0 && needed > share) {
    cost.feasible = false;
    cost.why_not = text("it needs ", base::format_bytes(static_cast<double>(needed)), ", its share of the node is ",
                        base::format_bytes(static_cast<double>(share)));
  }
  // The processors of a node are shared by the trials on it, its GPUs are not.
  const double slower = found->gpus > 0 ? 1 : static_cast<double>(place.workers);
  cost.seconds = found->total_seconds.value_or(0) * slower;
  // Ranks share the samples of an epoch, and each has its part of every step.
  if (found->gpus == 0 && found->job && found->job->training.steps > 0) {
    cost.seconds *= static_cast<double>(place.ranks);
  }
  return cost;
}

TrialCost ask_cost(const std::string& lockstep, const base::Path& job, const std::vector<std::string>& sets,
                   const TrialPlace& place) {
  const base::TemporaryFolder folder;
  const base::Path answer = folder.path() / "plan.json";
  std::vector<std::string> words{lockstep, "plan",        job.string(), "--on",
                                 "here",   "--no-search", "--json",     answer.string()};
  if (place.gpus > 0) words.insert(words.end(), {"--gpus", text(place.gpus)});
  for (const auto& set : sets) words.insert(words.end(), {"--set", set});
  site::ask(words, std::chrono::minutes(10));
  // With exit code 3 (nothing fits) the document is there as well.
  return std::filesystem::exists(answer) ? cost_of(spec::load_plan(answer), place) : TrialCost{};
}

}  // namespace lockstep::verbs::tune
