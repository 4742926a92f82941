// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/advice/advise.h"
#include "lockstep/advice/claims.h"
#include "lockstep/spec/project.h"

namespace lockstep::advice {

// One experiment of the project on the machine that is asked for.
struct Estimate {
  spec::Experiment experiment;
  planning::Plan plan;
  forecast::Option option;  // of `plan`: what would be run
  double full_runs = 0;     // tuning counted by its share
  double run_units = 0;     // of one full run, in the centre's unit
  double units = 0;         // of all runs, margin counted
};

// An application for computing time, worked out.
struct Application {
  spec::Project project;
  std::vector<Estimate> estimates;
  planning::Plan as_written;  // the first experiment's job without overrides: what the claims are about
  std::vector<Checked> checked;
  std::vector<double> periods;  // units of each allocation period
  double units = 0;             // in all
  double smallest_units = 0;    // one run of each experiment, margin counted: less is of no use
  int64_t disk_bytes = 0;       // peak
  int64_t moved_in_bytes = 0;
  int64_t moved_out_bytes = 0;
};

// Plans every job of the project. User error: a job that does not run on what is asked for, a unit that cannot be
// counted because the machine's cores are not stated.
Application work_out(const spec::Project& project, const AdviceRequest& request);

// The justification with the fields that centres ask for; what only a person knows is a marked blank.
Paper justification(const Application& application);
base::Json to_json(const Application& application);

// `lockstep plan --advise apply project.json`.
Advice advise_apply(const AdviceRequest& request);

}  // namespace lockstep::advice
