// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/tune/share.h"
#include "lockstep/tune/study_run.h"
#include "lockstep/tune/trial_run.h"

namespace lockstep::tune {

// Starts a trial of the study: its program, or `lockstep train` in the trial's run folder, once the training that a
// dead worker left there has saved and ended.
std::unique_ptr<TrialRun> start_trial(const StudyOptions& options, const Space& space, const Share& share,
                                      const Trial& trial, bool maximize);

}  // namespace lockstep::tune
