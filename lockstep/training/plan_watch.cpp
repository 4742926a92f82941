// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/plan_watch.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/step/reducer.h"

namespace lockstep::training {
namespace {

using base::Json;
using base::text;

Promise promise_of_plan(const spec::Job& job, const TrainOptions& options, int64_t ranks) {
  const bool gpu = options.device.is_cuda();
  return find_promise(spec::load_plan(*options.plan), options.plan->string(), job,
                      standing_here(gpu ? "cuda" : "cpu", gpu ? options.device.index() : 0, ranks));
}

}  // namespace

double peak_memory(at::Device device) {
  if (device.is_cuda()) {
    const auto stats = at::getDeviceAllocator(device.type())->getDeviceStats(device.index());
    return static_cast<double>(stats.reserved_bytes[0].peak);  // [0]: of both pools
  }
  for (const auto& line : base::split(base::read_file("/proc/self/status"), '\n')) {
    if (line.starts_with("VmHWM:")) return 1024 * std::stod(line.substr(6));  // kB
  }
  return 0;
}

double process_seconds() {
  // Behind the name, which may hold blanks, the 20th word: ticks since the machine was started.
  const std::string content = base::read_file("/proc/self/stat");
  const auto words = base::split(content.substr(content.rfind(')') + 2), ' ');
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) -
         std::stod(words.at(19)) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

PlanWatch::PlanWatch(const spec::Job& job, const TrainOptions& options, int64_t ranks, Ledger& ledger)
    : ledger_(ledger),
      device_(options.device),
      facts_(promise_of_plan(job, options, ranks), job.training.global_batch) {}

void PlanWatch::before_step(bool begins_epoch) {
  if (begins_epoch) epoch_start_ = base::steady_seconds();
  if (facts_.profiling() && device_.is_cpu() && !profile_) profile_ = std::make_unique<OperatorProfile>();
}

// The first step of a session loads and chooses kernels, on a GPU for 1 to 12 s: beyond a step's promised length that
// belongs to the start-up, not to the epoch.
void PlanWatch::begin(double first_step) {
  start_up_left_ = std::max(0.0, first_step - facts_.promised_step().value_or(first_step));
  if (epoch_start_ > 0) epoch_start_ += start_up_left_;
  before_ = std::max(0.0, process_seconds() - features_ - first_step);
  facts_.started(before_ + start_up_left_);
}

void PlanWatch::features(double seconds) {
  facts_.features(seconds);
  if (facts_.steps() == 0) features_ += seconds;
}

void PlanWatch::step(int64_t step, const StepFact& fact) {
  if (facts_.steps() == 0) begin(fact.seconds);
  facts_.step(fact);
  if (profile_ && !facts_.profiling()) {
    auto by_class = profile_->seconds_by_class();
    for (auto& [name, seconds] : by_class) seconds /= Facts::kProfileTo - Facts::kProfileFrom;
    facts_.profiled(std::move(by_class));
    profile_.reset();
  }
  if (facts_.steps() == Facts::kFirstTable) tell(step, "warm");
}

void PlanWatch::end_epoch() {
  if (epoch_start_ > 0) facts_.epoch(base::steady_seconds() - epoch_start_);
}

void PlanWatch::end(int64_t step, std::optional<double> total_seconds, int64_t sessions) {
  if (total_seconds) facts_.total(*total_seconds + static_cast<double>(sessions) * before_);
  tell(step, "end");
}

void PlanWatch::tell(int64_t step, const char* when) {
  facts_.memory(peak_memory(device_));
  const auto rows = facts_.compare();
  const auto why = facts_.explain();
  Json fields = Json::object();
  fields["step"] = step;
  fields["when"] = when;
  fields["option"] = facts_.promise().option;
  fields["title"] = facts_.promise().title;
  fields["rows"] = to_json(rows);
  fields["why"] = Json::array_of(why);
  ledger_.note("promise", fields);
  std::string words =
      text("promise against fact after step ", step, " (", facts_.promise().title, ")\n", to_text(rows));
  for (const auto& line : why) words += text("  ", line, "\n");
  words.pop_back();  // the line end
  ledger_.say(words);
}

}  // namespace lockstep::training
