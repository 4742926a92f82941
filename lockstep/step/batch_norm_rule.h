// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/comm/group.h"
#include "lockstep/model/batch_norm.h"
#include "lockstep/spec/job.h"

namespace lockstep::step {

// What training.batch_norm asks of a network on these ranks; none: its own way (local, and sync on one rank). `group`
// must outlive it.
model::BatchNormRule batch_norm_rule(const spec::Training& training, comm::Group& group);

// Whether every rank must take as many passes as the others, rows or not: their batch norms meet.
bool passes_together(const spec::Training& training, const comm::Group& group);

}  // namespace lockstep::step
