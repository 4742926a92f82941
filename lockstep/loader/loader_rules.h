// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/loader/loader.h"
#include "lockstep/spec/job.h"

// How a run loads its samples: asked by the run, and by `plan` before there is one.
namespace lockstep::loader {

// One rank, as far as its loaders care.
struct LoaderSeat {
  int64_t rank = 0;
  int64_t ranks = 1;
  int64_t local_ranks = 1;  // of its node
  int64_t threads = 1;      // that the rank may compute with
  bool card = false;        // a GPU computes
  bool validates = false;
};

// A global batch at a time, of which each rank gets its share: to train, and for the features that training takes.
LoaderOptions training_loader(const spec::Job& job, const LoaderSeat& seat);
LoaderOptions feature_loader(const spec::Job& job, const LoaderSeat& seat);
// Of one rank's whole batches.
LoaderOptions validation_loader(const spec::Job& job, const LoaderSeat& seat);

}  // namespace lockstep::loader
