// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/base/json.h"
#include "lockstep/spec/job.h"

namespace lockstep::run {

// What two sessions of one run must have in common, as key -> value; stored with each checkpoint. The collections count
// by their fingerprints (one of an earlier version lacks what stands behind a "/"); without validation data that one is
// empty.
base::Json identity(const spec::Job& job, const std::string& train_sha256, const std::string& validate_sha256);
// The order of the samples that a run began with, as its checkpoint says. A checkpoint that says nothing is older than
// the order `windows`.
spec::SampleOrder order_of(const base::Json& saved_identity);
// The first key in which a run that is `now` differs from the one that was saved, with both values; empty: none. A key
// that the saved identity does not have is newer than it; then the value must be the one that every run had before.
// Validation data may be given up, or be added where there were none, but not exchanged: the best so far was found on
// them.
std::string difference(const base::Json& saved, const base::Json& now);
// User error naming that key for the checkpoint of `folder`.
void check_identity(const base::Json& saved, const base::Json& now, const std::string& folder);

}  // namespace lockstep::run
