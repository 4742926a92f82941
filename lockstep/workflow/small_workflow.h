// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "lockstep/base/file.h"
#include "lockstep/spec/workflow.h"
#include "lockstep/workflow/stage_record.h"
#include "lockstep/workflow/workflow_run.h"

namespace lockstep::workflow {

// For tests: a workflow of shell commands, in a folder of its own that is the current one while this lives.
class SmallWorkflow {
 public:
  explicit SmallWorkflow(const std::string& stages) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder_.path());
    describe(stages);
  }
  ~SmallWorkflow() { std::filesystem::current_path(before_); }
  SmallWorkflow(const SmallWorkflow&) = delete;
  SmallWorkflow& operator=(const SmallWorkflow&) = delete;

  void describe(const std::string& stages) {
    workflow = spec::parse_workflow(base::parse_json("{\"stages\": {" + stages + "}}", "workflow.json"));
  }
  StatePaths paths() const { return {folder_.path() / "workflow.workflow"}; }
  const base::Path& folder() const { return folder_.path(); }

  RunOptions options() const {
    RunOptions all;
    all.workflow = workflow;
    all.document = "workflow.json";
    all.state = paths().root;
    all.program = "/bin/false";
    all.cores = {0, 1};
    return all;
  }
  RunResult run() const { return run_workflow(options()); }

  spec::Workflow workflow;

 private:
  base::TemporaryFolder folder_;
  base::Path before_;
};

}  // namespace lockstep::workflow
