// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/step/step.h"
#include "lockstep/training/training_context.h"

namespace lockstep::training {

// The next step; each training.replay_every-th one is computed twice from the same state, since a sound machine gives
// the same bits. Machine error, on every rank, that names the ranks where it did not. Every rank calls it.
step::StepResult run_step(TrainingContext& context, step::Step& step, const step::Samples& samples, double lr,
                          bool want_stop);

}  // namespace lockstep::training
