// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/tune/study_file.h"

namespace lockstep::tune {

// What our own records are in Optuna's terms: trials are its trials, all else stands in attributes.
enum class Attr { user, system };
void record_attr(StudyFile::Update& update, int64_t trial, Attr kind, const std::string& key, const base::Json& value);

// A new running trial of this worker with these values; its id is trials().next_trial_id() before.
void record_new(StudyFile::Update& update, const Space& space, const Values& values);

// Makes a waiting trial (Optuna's enqueue_trial) a running one of this worker. Values that it names itself are fixed,
// the others are those given.
void record_claim(StudyFile::Update& update, int64_t trial, const Space& space, Values values);

// A trial that is stopped behind a rung, under way until its training has ended; then nobody's; then this worker's.
void record_pause(StudyFile::Update& update, int64_t trial);
void record_release(StudyFile::Update& update, int64_t trial);
void record_promotion(StudyFile::Update& update, int64_t trial);

// A running trial that was not begun waits again, for whoever can pay it.
void record_postponed(StudyFile::Update& update, int64_t trial);

void record_end(StudyFile::Update& update, int64_t trial, TrialState state, std::optional<double> value);

}  // namespace lockstep::tune
