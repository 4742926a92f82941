// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/catalogue/catalogue.h"
#include "lockstep/forecast/option.h"
#include "lockstep/forecast/search.h"
#include "lockstep/planning/tracer.h"
#include "lockstep/spec/job.h"

namespace lockstep::planning {

// What the job's own data say about the length of the run; where they are not here, what the user says.
struct Lengths {
  int64_t samples = 0;             // 0: not known
  int64_t validation_samples = 0;  // 0: not known, or none
  int64_t classes = 0;
  std::vector<std::string> notes;  // what is not known and how to say it
};
// Looks at the folders; `samples` and `validation_samples` of --samples and --validation-samples count first (0: not
// given). User error when the number of classes is nowhere stated.
Lengths find_lengths(const spec::Job& job, int64_t samples, int64_t validation_samples);

struct PlanRequest {
  spec::Job job;                                 // of a recording: only name and length count
  std::optional<forecast::Recording> recording;  // a user's own step, instead of the job's
  Lengths lengths;
  std::vector<forecast::MachineOption> machine_options;
  forecast::Assumptions assumptions;
  bool search = true;  // also looks for better levers
  std::vector<forecast::Lever> levers = {forecast::Lever::precision, forecast::Lever::micro_batch,
                                         forecast::Lever::recompute, forecast::Lever::zero};  // that it may turn
  Tracer* tracer = nullptr;  // REQUIRES: there is one, or a recording
};

// Where nothing fits: the fewest bytes of a GPU with which the job would run.
struct LeastMemory {
  int64_t bytes = 0;
  forecast::Option with = {};  // the levers that need them; only levers and changes are filled
};

struct Plan {
  spec::Job job;  // resolved: the classes are known
  bool recorded = false;
  forecast::Workload workload;
  forecast::Assumptions assumptions;
  std::string title;  // "resnet50"
  int64_t parameters = 0;
  int64_t checkpoint_bytes = 0;
  std::vector<forecast::Option> options;  // as written, by machine option; behind each what the search found
  forecast::Best best;
  std::optional<LeastMemory> least;  // looked for only where no option fits
  std::vector<std::string> notes;
  std::optional<forecast::Recording> recording;  // of the first option
  double trace_seconds = 0;
  double forecast_seconds = 0;
  int64_t num_traced = 0;
};

// Bytes of all checkpoints of the run that lie on the disk at once.
int64_t disk_bytes(const Plan& plan, const forecast::Option& option);

// Traces the job's step on a simulated device and makes the forecast for every machine option. Nothing is printed, no
// real device is opened. User error: more ranks than samples in a batch, an operator that cannot be simulated.
Plan make_plan(const PlanRequest& request, const catalogue::Catalogue& catalogue,
               const forecast::Calibration& calibration);

// The job with an option's changes, for --save-job.
spec::Job changed_job(const Plan& plan, const forecast::Option& option);

}  // namespace lockstep::planning
