// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/json.h"

namespace lockstep::run {

// What a change of a key between two sessions of a run means.
enum class ChangeKind {
  harmless,  // the run is the same one: where data lie, when to save and evaluate, memory and threads
  length,    // more or fewer steps: the schedule is that of the new length from here on
  result     // what is trained is something else from here on: only when somebody accepts it
};

struct JobChange {
  std::string key;  // "training.optimizer.lr"
  base::Json was;
  base::Json now;
  ChangeKind kind = ChangeKind::result;

  std::string text() const;  // "training.optimizer.lr: 0.1 -> 0.02"
  base::Json to_json() const;
};

// In the order of the document. `was` is the job.json of a run, perhaps of an earlier version: what it does not say had
// the default. Both are resolved. What identity() holds is compared there, and refused whoever accepts it.
std::vector<JobChange> job_changes(const base::Json& was, const base::Json& now);

// User error that names each change of ChangeKind::result; nothing when there is none.
void refuse_changes(const std::vector<JobChange>& changes, const std::string& run, int64_t step);

}  // namespace lockstep::run
