// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/reduced_path.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "lockstep/base/clock.h"
#include "lockstep/step/batch_norm_rule.h"
#include "lockstep/step/optimizer.h"

namespace lockstep::step {
namespace {

std::vector<at::Tensor> leaves_of(const std::vector<model::Named>& named, const WeightCopies* copies) {
  std::vector<at::Tensor> leaves;
  leaves.reserve(named.size());
  for (const auto& entry : named) leaves.push_back(copies ? copies->leaf(entry.tensor) : entry.tensor);
  return leaves;
}

}  // namespace

ReducedPath::ReducedPath(const model::Network& network, const std::vector<model::Named>& parameters, comm::Group& group,
                         const StepOptions& options, const DeviceUpdate* update)
    : group_(group),
      options_(options),
      parameters_(leaves_of(parameters, options.copies)),
      pass_(network, options),
      reducer_(parameters_, group, options.training.reduce_precision),
      statistics_(network, options.norms_from(network)),
      update_(update),
      graph_(StepGraph::make(options, group, parameters_)) {}

BatchSums ReducedPath::run(const Samples& samples, double scale, bool want_stop) {
  seed_dropout(options_, group_.rank(), samples.step);
  if (graph_ || update_) return run_alone(samples, scale, want_stop);
  statistics_.keep();
  const PassSums mine = accumulate(samples, scale);
  const double exposed = reducer_.exposed_seconds(base::steady_seconds());
  BatchSums sums = over_ranks(mine, pass_.num_totals(), want_stop, group_);
  sums.exposed_seconds = exposed;
  return sums;
}

// Alone on a GPU: what the host must know of the step it reads at once, so that the GPU waits for it once.
BatchSums ReducedPath::run_alone(const Samples& samples, double scale, bool want_stop) {
  if (options_.training.precision == spec::Precision::amp) {
    if (!scale_.defined()) scale_ = at::full({}, scale, at::TensorOptions(options_.device).dtype(at::kFloat));
    if (scale != scale_value_) scale_.fill_(scale);
    scale_value_ = scale;
  }
  const auto all = [&](const Samples& of) {
    statistics_.keep();
    PassSums sums = accumulate(of, scale);
    sums.totals = report(sums);
    sums.kept = statistics_.kept();
    return sums;
  };
  const PassSums mine = graph_ ? graph_->run(samples, all) : all(samples);
  statistics_.restore_to(mine.kept);
  BatchSums sums = over_ranks(mine, pass_.num_totals() + 2, want_stop, group_);
  finite_ = sums.totals.back() == 0;
  sums.totals.pop_back();
  sums.norm = sums.totals.back();
  sums.totals.pop_back();
  sums.updated = update_ != nullptr;
  sums.finite = finite_;
  return sums;
}

// Totals, norm, and 0 where the statistics are finite; where it can the update comes with it.
at::Tensor ReducedPath::report(const PassSums& sums) const {
  std::vector<at::Tensor> gradients;
  gradients.reserve(parameters_.size());
  for (const auto& parameter : parameters_) gradients.push_back(parameter.grad());
  const auto there = at::TensorOptions(options_.device).dtype(at::kDouble);
  const at::Tensor totals = sums.totals.defined() ? sums.totals : at::zeros({pass_.num_totals()}, there);
  const at::Tensor finite = statistics_.all_finite(options_.device);
  if (update_) return update_->run(totals, gradients, finite, scale_);
  return at::cat(
      {totals, global_norm_there(gradients).to(at::kDouble).view({1}), finite.logical_not().to(at::kDouble).view({1})});
}

// Passes of this rank: as many as its rows need or, where batch norms of all ranks meet in each of them, as many as
// those of the rank with most rows; then one at least.
int64_t ReducedPath::num_passes(int64_t rows) const {
  const int64_t micro = options_.training.micro_batch;
  int64_t passes = micro > 0 ? (rows + micro - 1) / micro : std::min<int64_t>(1, rows);
  if (!passes_together(options_.training, group_)) return passes;
  for (const at::Tensor& other : group_.all_gather(at::tensor({passes}, at::kLong))) {
    passes = std::max({int64_t{1}, passes, other.item<int64_t>()});
  }
  return passes;
}

PassSums ReducedPath::accumulate(const Samples& samples, double scale) {
  PassSums sums;
  const int64_t rows = samples.rows();
  const int64_t micro = options_.training.micro_batch > 0 ? options_.training.micro_batch : rows;
  const int64_t passes = num_passes(rows);
  for (int64_t i = 0; i < passes; ++i) {
    const int64_t start = std::min(rows, i * micro);
    const int64_t count = std::min(micro, rows - start);
    if (i + 1 == passes) reducer_.prepare();  // only the last backward of a step is reduced: it has the sum
    const auto global_size = static_cast<double>(samples.global_size);
    sums += pass_.run(samples.slice(start, count), scale_.defined() ? global_size : global_size / scale, scale_);
  }
  if (passes == 0) pass_nothing();
  return sums;
}

// A rank without rows (the last batch may be smaller than the ranks are many) adds zeros to every sum.
void ReducedPath::pass_nothing() {
  reducer_.prepare();
  at::Tensor zero = at::zeros({}, at::TensorOptions(options_.device));
  for (const auto& parameter : parameters_) zero = zero + (parameter * 0).sum();
  zero.backward();
}

double ReducedPath::norm(const std::vector<at::Tensor>& gradients) const {
  return global_norm(gradients);
}

void ReducedPath::take_statistics(const Samples& samples) {
  if (finite_) return;
  if (passes_together(options_.training, group_)) return statistics_.keep_finite();  // every rank has the same
  statistics_.merge(group_, samples.rows(), samples.global_size);
}

void ReducedPath::drop_statistics() {
  statistics_.restore();
}

}  // namespace lockstep::step
