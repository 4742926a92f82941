// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/spec/workflow.h"
#include "lockstep/workflow/freshness.h"
#include "lockstep/workflow/queue.h"
#include "lockstep/workflow/timeline.h"

namespace lockstep::verbs::workflow {

// A stage as `status`, `plan` and the page show it.
struct StageState {
  std::string word;  // "done", "runs", "out of date", ...
  std::string why;
};

// In the order of the document. What runs here or stands in a queue comes before what was found in the files.
std::vector<StageState> stage_states(const spec::Workflow& workflow, const lockstep::workflow::StatePaths& paths,
                                     const std::vector<lockstep::workflow::StagePlan>& plans,
                                     const std::optional<lockstep::workflow::QueueState>& queue);

std::string states_text(const spec::Workflow& workflow, const std::vector<StageState>& states);

// Everything that the page shows: stages, how they stand, the timeline and the Amdahl sum.
base::Json gather_workflow(const spec::Workflow& workflow, const std::vector<StageState>& states,
                           const lockstep::workflow::Timeline& timeline, const lockstep::workflow::Amdahl& amdahl);
std::string render_workflow(const base::Json& data);

}  // namespace lockstep::verbs::workflow
