// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/spec/workflow.h"

namespace lockstep::workflow {

struct RunOptions {
  spec::Workflow workflow;
  base::Path document;             // for messages
  base::Path state;                // <name>.workflow
  std::string program;             // this program, absolute
  std::vector<int> cores;          // that may be used
  std::vector<std::string> gpus;   // likewise, as CUDA_VISIBLE_DEVICES names them
  std::vector<std::string> again;  // stages that run although they are up to date
  bool here = false;               // also on a login node
  std::string only;                // this stage alone, as a job of a queue does; empty: all
  std::function<int()> stop;       // the signal that asks to stop; 0: none
  std::function<void(std::string_view)> say;
};

// How a stage came out of a run.
struct StageOutcome {
  enum class What { waiting, up_to_date, ran, failed, stopped, blocked };
  What what = What::waiting;
  double seconds = 0;    // in which it ran
  std::string why = {};  // it ran, failed or is blocked
  int code = 0;          // of its command, where it failed
  int64_t attempts = 0;  // in this run
  bool operator==(const StageOutcome&) const = default;
};

struct RunResult {
  std::vector<StageOutcome> stages;  // as in the document
  bool stopped = false;              // by a signal, or a stage asks to go on later

  int64_t count(StageOutcome::What what) const;
  const StageOutcome* first_failure(size_t* stage) const;  // null: none
};

// Runs what is out of date, what can at the same time, each stage when those that it waits for are done. A stage that
// fails stops those that wait for it, not the others. Holds the state folder, unless it runs one stage alone.
// REQUIRES: the workflow's folder is the current one.
RunResult run_workflow(const RunOptions& options);

// What a stage may use here: the cores that it asks for, of so many; all of them where it says 0 and is one of
// lockstep's own verbs, which know what to do with them.
int64_t cores_here(const spec::Stage& stage, int64_t cores);

}  // namespace lockstep::workflow
