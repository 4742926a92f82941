// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/spec/job.h"
#include "lockstep/spec/machine.h"

namespace lockstep::chain {

// What the user asked for, with the documents read.
struct SubmitRequest {
  spec::Job job;
  spec::Machine machine;
  base::Path run;                      // absolute
  base::Path folder;                   // where the user stands, absolute
  std::string program;                 // this program, absolute
  std::string device;                  // "cpu", "cuda"; empty: cuda where the machine has GPUs
  std::vector<int64_t> nodes = {1};    // several: with earliest
  int64_t ranks_per_node = 0;          // 0: one a GPU, or one a processor package
  double walltime = 0;                 // of one job; 0: from job, machine and plan
  int64_t links = 0;                   // 0: by the plan
  int64_t max_links = 0;               // 0: twice the planned, at least 5 more; 50 without a plan
  int64_t patience = 3;                // links in a row that may bring no new step
  std::string hours;                   // run time by nodes, where plan cannot say
  std::vector<std::string> work = {};  // `predict ...` of a collection, `tune ...` of a study: there is no job then
  bool plan = true;
  bool earliest = false;
  bool dry_run = false;
};

}  // namespace lockstep::chain
