// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/spec/job.h"

namespace lockstep::run {

// When a run does what, in steps. The run goes by these functions and the plan counts with them.

// Of so many epochs; at least 1.
int64_t steps_of(double epochs, int64_t steps_per_epoch);

// Steps between two evaluations; 0: one after the last only. `steps_per_epoch` 0: not known.
int64_t evaluation_steps(const spec::Evaluation& evaluation, int64_t steps_per_epoch);

// How long the job says that it is: phases, or else steps, or else epochs.
struct Span {
  double epochs = 0;
  int64_t steps = 0;
  std::vector<double> phases = {};  // epochs of each
};
Span span_of(const spec::Training& training);

// The steps of each phase; those without epochs have none. A job without phases is one. `steps_per_epoch` 0: not known,
// and no steps but where the job gives them.
std::vector<int64_t> phase_steps(const Span& span, int64_t steps_per_epoch);

// Something that is done every `every` steps of a run of `total`, and after the last; 0: after the last only.
bool is_due(int64_t step, int64_t every, int64_t total);
int64_t times_due(int64_t every, int64_t total);

}  // namespace lockstep::run
