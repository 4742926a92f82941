// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/model/network.h"
#include "lockstep/objective/objective.h"
#include "lockstep/spec/job.h"
#include "lockstep/task/task.h"

namespace lockstep::training {

// A network with weights of a run, ready for evaluation. Which ones: the best by the headline where the run has
// validation, else the last; or as TrainedOptions::which says.
struct Trained {
  spec::Job job;
  std::shared_ptr<const task::Task> task;
  std::shared_ptr<const objective::Objective> objective;
  std::vector<std::string> classes;  // label -> name; none where the task has no classes
  model::Network network;
  base::Path run;                       // empty for weights outside a run folder
  base::Path weights;                   // the file they came from
  std::string which = {};               // for people: "best, step 1200, top-1 92.93 %"; empty outside a run folder
  std::vector<std::string> notes = {};  // damaged checkpoints that were passed over, warnings
  base::Path trust = {};                // where trust.json lies, if any: the run, or a version of a store
};

struct TrainedOptions {
  base::Path source;                   // a run folder, or a weights file (safetensors, .pth)
  base::Path job = {};                 // for weights outside a run folder
  std::vector<std::string> sets = {};  // overrides of the job: "data.image_size=96"
  at::Device device = at::kCPU;
  std::string which = {};  // of a run: "best", "last", a step; empty: by the rule
};

// User error when the source is missing, has no weights yet, or the weights belong to another network; the class names
// come from the weights file, its checkpoint's state, or the training data, in this order.
Trained load_trained(const TrainedOptions& options);

// As many compute threads as the job says, or as the machine and its other processes leave to this one. Gives the
// reason where those are fewer than its share of the cores.
std::string use_threads(const spec::Job& job);

}  // namespace lockstep::training
