// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/spec/job.h"

namespace lockstep::run {

// One interval of steps over which a schedule runs (a phase of the job, or all of it).
struct StepInterval {
  double lr = 0.1;         // the peak
  double warmup_from = 0;  // where warm-up starts
  int64_t num_steps = 1;
  int64_t steps_per_epoch = 1;
};

// The learning rate of step `step` of the interval, 0 <= step < num_steps: a pure function, so a resumed run needs no
// state. Warm-up rises linearly to the peak over `warmup_epochs` (from 0 the first step has one part of the rise; from
// elsewhere, as Goyal et al. (2017) do, the first step has just that rate), then the named curve runs over the steps
// that are left; onecycle brings its own rise (peak_share) and takes no warm-up.
double learning_rate(const spec::Schedule& schedule, const StepInterval& interval, int64_t step);

// The peak that optimizer.lr becomes by schedule.scale, and where its warm-up starts: with a rule that raises the rate,
// at optimizer.lr itself (Goyal et al.).
double peak_rate(const spec::Training& training);
double warmup_start(const spec::Training& training);
// How the peak comes about, for who reads along; empty without a rule.
std::string rate_rule_text(const spec::Training& training);

}  // namespace lockstep::run
