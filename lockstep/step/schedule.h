// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/spec/job.h"

namespace lockstep::step {

// One stretch of steps over which a schedule runs (a phase of the job, or all of it).
struct Stretch {
  double lr = 0.1;  // the peak
  int64_t num_steps = 1;
  int64_t steps_per_epoch = 1;
};

// The learning rate of step `step` of the stretch, 0 <= step < num_steps: a pure function, so a resumed run needs no
// state. Warm-up rises linearly to the peak over `warmup_epochs`, then the named curve runs over the steps that are
// left; onecycle brings its own rise (peak_share) and takes no warm-up.
double learning_rate(const spec::Schedule& schedule, const Stretch& stretch, int64_t step);

}  // namespace lockstep::step
