// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/loader/loader.h"
#include "lockstep/spec/job.h"

// How a run loads its samples: asked by the run, and by `plan` before there is one.
namespace lockstep::loader {

// What the loaders of one rank depend on.
struct LoaderSettings {
  int64_t rank = 0;
  int64_t ranks = 1;
  int64_t local_ranks = 1;  // of its node
  int64_t threads = 1;      // that the rank may compute with
  bool gpu = false;         // a GPU computes
  bool validates = false;
  std::shared_ptr<const task::Task> task = nullptr;  // null: the job's, the classes of its data not known
};

// Loads a global batch at a time, of which each rank gets its share: for training, and for cached features.
LoaderOptions training_loader(const spec::Job& job, const LoaderSettings& settings);
LoaderOptions feature_loader(const spec::Job& job, const LoaderSettings& settings);
// Loads whole batches of one rank.
LoaderOptions validation_loader(const spec::Job& job, const LoaderSettings& settings);

}  // namespace lockstep::loader
