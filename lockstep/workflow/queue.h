// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/chain/script.h"
#include "lockstep/site/batch.h"
#include "lockstep/spec/machine.h"
#include "lockstep/spec/workflow.h"
#include "lockstep/workflow/stage_record.h"

namespace lockstep::workflow {

// A workflow that goes through a scheduler's queue: a job a stage, which starts when the jobs of the stages that it
// waits for have ended well. Each job decides by itself whether its stage has to run.
struct QueueRequest {
  spec::Workflow workflow;
  std::vector<std::string> sets = {};  // --set of whoever asked, for the jobs
  base::Path document;                 // absolute
  base::Path folder;                   // the document's, absolute
  base::Path state;                    // absolute
  std::string program;                 // this program, absolute
  spec::Machine machine;
  std::function<void(const std::string&)> say = {};  // what whoever asked should know
};

struct StageJob {
  std::string stage;
  std::string job;  // its number in the queue; of a dry run: empty
  std::string script;
};

// What a stage asks the scheduler for. User error without a walltime, or for more than the machine has.
chain::Shape shape_of(const spec::Stage& stage, const spec::Machine& machine);
std::string stage_script(const QueueRequest& request, const spec::Stage& stage);

// Queues a job for every stage that is out of date or waits for one that is, and notes each at once. Stages with a job
// in the queue keep it; user error where one of what it waits for would get a new one. When the scheduler refuses one,
// those behind it are not queued, and the error says so. REQUIRES: the workflow's folder is the current one.
std::vector<StageJob> queue_stages(const QueueRequest& request);
std::vector<StageJob> dry_run(const QueueRequest& request);  // the scripts alone

// What was queued, and how the scheduler sees it now.
struct QueuedJob {
  std::string stage;
  std::string job;
  std::optional<site::BatchJob> seen;  // nothing: it is in the queue no more
};
struct QueueState {
  site::SchedulerName scheduler = site::SchedulerName::none;
  bool answered = false;  // the scheduler did
  std::vector<QueuedJob> jobs;

  const QueuedJob* live(const std::string& stage) const;  // its last one that waits or runs; null: none
};
std::optional<QueueState> read_queue(const StatePaths& paths);  // nothing: none was ever queued

// Takes what waits or runs out of the queue; returns the jobs. Machine error when the scheduler refuses, user error
// when others could have written down which jobs these are.
std::vector<std::string> cancel_stages(const StatePaths& paths);

}  // namespace lockstep::workflow
