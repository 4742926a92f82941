// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/base/file.h"
#include "lockstep/training/training_context.h"

// Where a session starts, and what it writes down before its first step. Every rank calls all of these.
namespace lockstep::training {

// The newest good checkpoint of the run folder, on every rank; empty: the run has none yet. Errors when the folder is
// another job's, and when every checkpoint is damaged.
std::string find_checkpoint(TrainingContext& context);

// Goes to that checkpoint, or without one to the weights that the job begins with; the ranks are shown to have the
// same. Makes the moving average.
void go_to_start(TrainingContext& context, const std::string& checkpoint);

// Network, moving average and state from a checkpoint. User error when it is of another run.
enum class Restore { resume, rewind };
void restore(TrainingContext& context, const base::Path& checkpoint, Restore how);

// Rank 0: says and writes down what the job says otherwise than that of the session before; user error when that makes
// another run of it and nobody accepts it. Then job (unless nothing is left to train) and plan in the run folder, the
// first event of the session, and what a person should know.
void write_start(TrainingContext& context);

}  // namespace lockstep::training
