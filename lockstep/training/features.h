// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/group.h"
#include "lockstep/loader/loader.h"
#include "lockstep/model/network.h"
#include "lockstep/run/balanced_order.h"
#include "lockstep/run/feature_needs.h"
#include "lockstep/spec/job.h"
#include "lockstep/step/evaluate.h"
#include "lockstep/step/step.h"
#include "lockstep/task/task.h"

namespace lockstep::training {

// What the frozen blocks make of every sample of a collection, kept in memory on every rank: computed once, each rank
// its share, then trained on for many cheap epochs.
struct Features {
  std::vector<model::Bundle> views;       // each [samples, ...], float, CPU: what block `from` takes
  std::vector<task::FieldValues> fields;  // of all samples, but for those that the frozen blocks took
  std::vector<uint8_t> was_read;          // by sample
  std::vector<std::string> annotations;   // by sample, what a score needs besides; none: nothing
  size_t from = 0;
  std::optional<run::BalancedOrder> balanced = {};  // data.balance; nothing: an epoch takes every sample once

  int64_t num_samples() const { return static_cast<int64_t>(was_read.size()); }
  int64_t bytes() const;  // of the views
};

// Bytes of one sample in one view: blocks [0, to) are run once, on a blank sample of the job.
int64_t feature_row_bytes(const model::Network& network, size_t to, const spec::Job& job, at::Device device);

// One for each phase of the job that caches features. `network` is the job's, on `device`.
std::vector<run::FeatureNeeds> feature_needs(const spec::Job& job, const model::Network& network, at::Device device,
                                             int64_t samples);

struct FeatureRequest {
  size_t to = 0;  // blocks [0, to) are run
  spec::Views views = spec::Views::center;
  spec::Precision precision = spec::Precision::fp32;
  at::Device device = at::kCPU;
  std::function<void(int64_t samples)> seen = {};     // told after each batch: samples of this rank so far
  std::function<bool()> stop = [] { return false; };  // asked before each batch; true on one rank stops all
};

// `loader` gives the collection once, in order (Use::evaluate), with the fields of `task`. Nothing on all ranks when it
// was stopped.
std::optional<Features> compute_features(const model::Network& network, const task::Task& task, loader::Loader& loader,
                                         int64_t num_samples, comm::Group& group, const FeatureRequest& request);

// The share of (rank, step) of the shuffled batch, the same samples that the loader would have given. Of several views
// each sample has one, drawn from (seed, epoch, sample).
step::Samples feature_batch(const Features& features, const spec::Training& training, const run::LoaderState& state,
                            int64_t step, const comm::Group& group, at::Device device);

// The score of the blocks from `features.from` on over all samples, on every rank; `batch` of them at a time on the
// device, in the precision of training.
std::unique_ptr<task::Score> evaluate_features(const model::Network& network, const Features& features, int64_t batch,
                                               comm::Group& group, const step::EvaluateOptions& options);

}  // namespace lockstep::training
