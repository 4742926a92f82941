// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/claims.h"

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/planning/wording.h"

namespace lockstep::advice {
namespace {

using base::text;
using forecast::Option;

std::string need(const Option& option) {
  return text(planning::bytes_text(option.trial.memory.total), " a GPU of ",
              planning::bytes_text(option.trial.capacity));
}

// What stands behind every answer about memory: as written, and with levers.
std::string need(const Tried& tried) {
  std::string words = text("as written it needs ", need(*tried.written));
  if (tried.found && !tried.written->trial.fits) {
    words += text("; with ", planning::changes_text(*tried.found), " it needs ", need(*tried.found));
  }
  return words;
}

Checked about_memory(const spec::Claim& claim, const Tried& tried, bool says_fits) {
  const bool written = tried.written->trial.fits;
  const bool levers = tried.found && tried.found->trial.fits;
  if (written) return {claim, says_fits ? Verdict::true_ : Verdict::false_, need(tried)};
  if (levers) return {claim, Verdict::conditional, need(tried)};
  return {claim, says_fits ? Verdict::false_ : Verdict::true_,
          text(need(tried), "; ", lack_of_memory(*tried.written), ": no lever of the step makes it fit")};
}

Checked about_cuda(const spec::Claim& claim, const Option& option) {
  const auto& last = option.machine_option.gpu->last_cuda;
  if (!last) return {claim, Verdict::false_, "the current CUDA still drives it"};
  const bool equal = *last == claim.value || last->rfind(claim.value + ".", 0) == 0;
  return {claim, equal ? Verdict::true_ : Verdict::false_, text("the last CUDA that drives it is ", *last)};
}

Checked about_loader(const spec::Claim& claim, const Tried& tried) {
  const Option* option = tried.feasible();
  if (!option || !option->loader) return {claim, Verdict::unknown, "the job does not run there, so nothing waits"};
  const auto& loader = *option->loader;
  const auto cores = static_cast<int64_t>(std::ceil(loader.cores_needed));
  const std::string rate =
      text("the step takes ", base::fixed(option->samples_per_second, 0), " samples/s, a core decodes ",
           base::fixed(loader.per_core, 0), ": ", cores, cores == 1 ? " core keeps up" : " cores keep up");
  const int64_t there = option->machine_option.machine.cores_per_node * option->machine_option.nodes();
  if (there == 0) return {claim, Verdict::conditional, text(rate, "; how many cores the node has is not stated")};
  return {claim, loader.keeps_up ? Verdict::false_ : Verdict::true_, text(rate, "; there are ", there)};
}

Checked about_split(const spec::Claim& claim, const Tried& tried, int64_t batch) {
  const auto& trial = tried.written->trial;
  return {claim, Verdict::true_,
          text("a batch of ", batch, " gives each of ", claim.gpus, " GPUs ", trial.rows,
               " samples; every GPU keeps the whole network and the gradients are summed among all of them, none is "
               "the primary one")};
}

Checked check(const spec::Claim& claim, const planning::Plan& plan) {
  if (claim.kind == spec::ClaimKind::not_checkable) {
    return {claim, Verdict::unknown, "only a person can know this: name the evidence"};
  }
  const Tried tried = tried_on(plan, claim.on, claim.gpus);
  switch (claim.kind) {
    case spec::ClaimKind::fits:
      return about_memory(claim, tried, true);
    case spec::ClaimKind::does_not_fit:
      return about_memory(claim, tried, false);
    case spec::ClaimKind::last_cuda:
      return about_cuda(claim, *tried.written);
    case spec::ClaimKind::loader_starves:
      return about_loader(claim, tried);
    default:
      return about_split(claim, tried, plan.workload.work.global_batch);
  }
}

}  // namespace

std::string words_of(Verdict verdict) {
  const std::string name = name_of(verdict);
  return name.ends_with("_") ? name.substr(0, name.size() - 1) : name;
}

const Option* Tried::feasible() const {
  const bool first = written && written->feasible();
  const bool second = found && found->feasible();
  if (first && second) return found->trial.time->step.value < written->trial.time->step.value ? found : written;
  return first ? written : second ? found : nullptr;
}

Tried tried_on(const planning::Plan& plan, const std::string& machine_option, int64_t gpus) {
  Tried tried;
  for (const auto& option : plan.options) {
    if (option.machine_option.name != machine_option || option.machine_option.gpus != gpus) continue;
    (option.as_written ? tried.written : tried.found) = &option;
  }
  base::ensure(tried.written != nullptr, text("the plan has ", gpus, " x ", machine_option));
  return tried;
}

std::string lack_of_memory(const Option& option) {
  const auto& trial = option.trial;
  if (trial.fits) return "";
  const int64_t fixed = forecast::fixed_bytes(trial.memory);
  if (fixed > trial.capacity) {
    return text("weights, gradients, optimizer and driver alone take ", planning::bytes_text(fixed), ", ",
                planning::bytes_text(fixed - trial.capacity), " more than a GPU has");
  }
  return text(planning::bytes_text(trial.memory.total - trial.capacity), " too little on each GPU");
}

std::vector<Checked> check_claims(const std::vector<spec::Claim>& claims, const planning::Plan& plan) {
  std::vector<Checked> all;
  for (const auto& claim : claims) all.push_back(check(claim, plan));
  return all;
}

}  // namespace lockstep::advice
