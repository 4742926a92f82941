// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/train/out_of_memory.h"

#include <chrono>
#include <exception>
#include <filesystem>

#include "lockstep/base/file.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/site/command.h"

namespace lockstep::verbs::train {

using base::text;

// Less than the supervisor's patience: a rank that asks takes no step, and must not count as one that hangs.
constexpr std::chrono::seconds kPatience{20};

std::string what_would_fit(const spec::Plan& plan, int64_t gpus) {
  for (const spec::PlanOption& option : plan.options) {
    if (option.gpus != gpus || !option.fits) continue;
    const std::string needs = text("it needs ", base::format_bytes(static_cast<double>(option.memory.total)), " a GPU");
    if (option.as_written) {
      return text("by the plan the job fits as it is (", needs,
                  "): nvidia-smi says who else uses the GPU; wait for it, or take another");
    }
    std::string sets;
    for (const auto& set : option.set) sets += " " + base::shell_words({"--set", set});
    return text("this would have fitted:", sets, " (", needs, ")");
  }
  return {};
}

std::string ask_what_would_fit(const std::string& job, const std::vector<std::string>& sets, int64_t gpus) {
  try {
    const base::TemporaryFolder folder;
    const base::Path answer = folder.path() / "plan.json";
    std::vector<std::string> words{std::filesystem::read_symlink("/proc/self/exe").string(),
                                   "plan",
                                   job,
                                   "--on",
                                   "here",
                                   "--gpus",
                                   text(gpus),
                                   "--json",
                                   answer.string()};
    for (const auto& set : sets) words.insert(words.end(), {"--set", set});
    site::ask(words, kPatience);
    return std::filesystem::exists(answer) ? what_would_fit(spec::load_plan(answer), gpus) : std::string();
  } catch (const std::exception&) {
    return {};  // the failure itself is to be told, with or without advice
  }
}

}  // namespace lockstep::verbs::train
