// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/spec/workflow.h"
#include "lockstep/workflow/digest.h"
#include "lockstep/workflow/stage_record.h"

namespace lockstep::workflow {

// Whether a stage has to run, and why. REQUIRES: the workflow's folder is the current one.
struct Freshness {
  std::vector<std::string> reasons;  // none: it is up to date
  Basis basis;                       // as things are now
  std::optional<Record> record;
  std::optional<Attempt> attempt;    // that was ended before it was done
  std::vector<std::string> missing;  // inputs that are not there

  bool up_to_date() const { return reasons.empty(); }
  // Whether this file of the basis changed while the stage ran the last time, with the same words.
  bool changed_last_time(const std::string& path) const;
};
Freshness look_at(const spec::Stage& stage, const StatePaths& paths, Digests& digests);

// User error that names every input which is not there and which no stage writes, and every output that holds the
// workflow's own folder.
void check_files(const spec::Workflow& workflow, const base::Path& document);

// A stage before a run, as a person wants to read it.
struct StagePlan {
  enum class What { up_to_date, runs, may_run, cannot };
  size_t stage = 0;
  What what = What::runs;
  std::string why;  // in one line; empty: up to date
};
// In the order in which they would run. may_run: if what it waits for comes out with another content.
std::vector<StagePlan> plan_stages(const spec::Workflow& workflow, const StatePaths& paths, Digests& digests);

}  // namespace lockstep::workflow
