// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/loader/loader.h"
#include "lockstep/training/training_context.h"

namespace lockstep::training {

// Tells which samples this loader has skipped on any rank; each file once, however many ranks, epochs and phases meet
// it. Every rank calls it; null: nothing was loaded.
void report_bad_samples(TrainingContext& context, const loader::Loader* loader);

}  // namespace lockstep::training
