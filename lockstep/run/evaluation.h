// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/run/loader_state.h"
#include "lockstep/spec/job.h"

// How an evaluation is cut into batches and placed on the ranks: asked by the run, and by `plan` before there is one.
namespace lockstep::run {

// A rank's interval of an evaluation of `samples` in order: whole batches of `batch`, the last one smaller. So each
// sample stands in the same batch on any number of ranks, and gets the same bits. A rank may have none.
struct EvaluationShare {
  LoaderState from;  // for a loader of one rank, with kDefaultSeed
  int64_t batches = 0;
};
EvaluationShare evaluation_share(int64_t samples, int64_t batch, int64_t rank, int64_t ranks);

// That batch, of one rank: as the job says, else 32, or the global batch where that is smaller. Never the ranks.
int64_t evaluation_batch(const spec::Job& job);
// The same while training on `ranks`. On a GPU small batches cost time and equal bits are not promised: there, unless
// the job says otherwise, it is a pass of training.
int64_t evaluation_rows(const spec::Job& job, int64_t ranks, bool on_gpu);

// Samples of an evaluation on the rank that has the most: ranks have whole batches (evaluation_share).
int64_t busiest_rows(int64_t samples, int64_t batch, int64_t ranks);

}  // namespace lockstep::run
