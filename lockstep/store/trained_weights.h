// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/spec/job.h"

namespace lockstep::store {

// Weights to evaluate, export or keep, and the job they belong to.
struct TrainedWeights {
  base::Path run;                       // empty for weights outside a run folder
  base::Path trust = {};                // where their calibration lies, if any: the run, or the version's folder
  base::Path job;                       // the document
  base::Path weights;                   // the file; one of a checkpoint may lie in partitions (run/saved_tensors.h)
  std::string which = {};               // for people: "best, step 1200, top-1 92.93 %"; empty: a file that says nothing
  std::optional<int64_t> step = {};     // of the run, where it is known
  std::vector<std::string> notes = {};  // damaged checkpoints that were passed over
};

// One rule for all that read trained weights. `source` is a run folder, a version of a store ("STORE/pets:production",
// all of whose checksums are checked) or a file of weights; `job` is for weights that have none beside them. `which`,
// of a run: "best", "last" or a step; empty: the best where an evaluation has marked one, else the last. User error
// when there is no such thing; machine error for a damaged version.
TrainedWeights find_weights(const base::Path& source, const std::string& which = {}, const base::Path& job = {});

// label -> name: from the weights file, the state of the checkpoint it lies in, or the training data, in this order.
// REQUIRES: a task with classes.
std::vector<std::string> class_names(const TrainedWeights& source, const spec::Job& job);

}  // namespace lockstep::store
