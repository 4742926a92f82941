// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/comm/group.h"
#include "lockstep/model/batch_norm.h"
#include "lockstep/spec/job.h"

namespace lockstep::step {

// The rule that training.batch_norm asks for on these ranks. None: the network's own (local, or sync on one rank).
// `group` must outlive it.
model::BatchNormRule batch_norm_rule(const spec::Training& training, comm::Group& group);

// True when every rank must take as many passes as the others, even without rows: the batch norms exchange statistics.
bool passes_together(const spec::Training& training, const comm::Group& group);

}  // namespace lockstep::step
