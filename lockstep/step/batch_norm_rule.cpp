// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/batch_norm_rule.h"

#include "lockstep/step/ghost_batch_norm.h"
#include "lockstep/step/sync_batch_norm.h"

namespace lockstep::step {

model::BatchNormRule batch_norm_rule(const spec::Training& training, comm::Group& group) {
  if (training.batch_norm == spec::BatchNorm::ghost) {
    return [slice = training.ghost_batch](const model::BatchNormCall& call) { return ghost_batch_norm(call, slice); };
  }
  if (!passes_together(training, group)) return {};
  return [&group](const model::BatchNormCall& call) { return sync_batch_norm(call, group); };
}

bool passes_together(const spec::Training& training, const comm::Group& group) {
  return training.batch_norm == spec::BatchNorm::sync && group.size() > 1;
}

}  // namespace lockstep::step
