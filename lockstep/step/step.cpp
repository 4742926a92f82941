// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/step.h"

#include <ATen/ops/_foreach_mul.h>

#include <cmath>
#include <map>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/step/batch_norm_rule.h"
#include "lockstep/step/chunk_norm.h"
#include "lockstep/step/thread_scope.h"

namespace lockstep::step {
namespace {

// Freezes the blocks before `from` and returns the parameters of the others.
std::vector<model::Named> trained_parameters(const model::Network& network, size_t from) {
  std::vector<model::Named> trained;
  for (size_t i = 0; i < network.blocks().size(); ++i) {
    for (auto& parameter : network.blocks()[i]->parameters) {
      parameter.tensor.requires_grad_(i >= from);
      if (i >= from) trained.push_back(parameter);
    }
  }
  base::ensure(!trained.empty(), "a step has parameters to train");
  return trained;
}

// Before a path takes copies of the network.
const model::Network& with_rules(model::Network& network, const spec::Training& training, comm::Group& group) {
  network.use_batch_norm(batch_norm_rule(training, group));
  network.use_kernels(training.kernels);
  return network;
}

std::unique_ptr<Partitioning> make_partitioning(model::Network& network, comm::Group& group,
                                                const StepOptions& options) {
  if (options.training.zero == 0 || group.size() == 1) return nullptr;
  base::ensure(options.training.zero < 3 || !options.ema, "a moving average has whole weights to follow");
  return std::make_unique<Partitioning>(network, options.train_from, group, options.training.zero);
}

// Lasting ones, for steps of one pass that the device takes by itself.
std::unique_ptr<WeightCopies> make_copies(const model::Network& network, const comm::Group& group,
                                          StepOptions& options) {
  const spec::Training& training = options.training;
  const bool one_pass = training.micro_batch == 0 || training.micro_batch >= training.global_batch;
  if (!DeviceUpdate::is_possible(options, group)) return nullptr;
  auto copies = std::make_unique<WeightCopies>(network, one_pass ? training.precision : spec::Precision::fp32,
                                               options.train_from);
  if (!copies->empty()) options.copies = copies.get();
  return copies;
}

// How LARS and LAMB measure layers, also those of which a rank has partitions.
Norms norms_for(const spec::Training& training, const Partitioning* partitioning) {
  const bool exact = training.virtual_ranks > 0;
  if (!partitioning) return exact ? Norms(chunk_norms) : Norms();
  return [partitioning, exact](const std::vector<at::Tensor>& partitions) {
    return exact ? partitioning->chunk_norms(partitions) : partitioning->norms(partitions);
  };
}

}  // namespace

Step::Step(model::Network& network, comm::Group& group, StepOptions options)
    : group_(group),
      options_(std::move(options)),
      trained_(trained_parameters(network, options_.train_from)),
      partitioning_(make_partitioning(network, group, options_)),
      copies_(make_copies(network, group, options_)),
      optimizer_(options_.training.optimizer, partitioning_ ? partitioning_->partitions() : trained_,
                 norms_for(options_.training, partitioning_.get()), layer_rates(options_.training.optimizer, network)),
      update_(copies_ ? std::make_unique<DeviceUpdate>(options_, optimizer_, *copies_) : nullptr),
      path_(make_gradient_path(with_rules(network, options_.training, group), trained_, group, options_,
                               partitioning_.get(), update_.get())),
      scale_(options_.training.precision == spec::Precision::amp && options_.device.is_cuda()) {}

void Step::assemble() {
  if (partitioning_) partitioning_->assemble();
}

std::vector<model::Named> Step::state(const Wanted& wanted) const {
  auto all = optimizer_.state();
  if (partitioning_) all = partitioning_->whole_state(all, wanted);
  for (auto& entry : scale_.state()) all.push_back(std::move(entry));
  std::erase_if(all, [&](const model::Named& entry) { return !wanted(entry.name); });
  return all;
}

CutState Step::cut_state() const {
  base::ensure(partitioning_ != nullptr, "a state in partitions is one of several ranks with training.zero");
  auto all = optimizer_.state();
  for (auto& entry : scale_.state()) all.push_back(std::move(entry));
  return {*partitioning_, all};
}

int64_t Step::state_bytes() const {
  std::map<std::string, int64_t> whole;
  for (const auto& parameter : trained_) whole[parameter.name] = parameter.tensor.numel();
  int64_t bytes = 0;
  auto all = optimizer_.state();
  for (auto& entry : scale_.state()) all.push_back(std::move(entry));
  for (const auto& entry : all) {
    const auto parameter = whole.find(entry.name.substr(entry.name.find('.') + 1));
    const int64_t numel = parameter == whole.end() ? entry.tensor.numel() : parameter->second;
    bytes += numel * static_cast<int64_t>(entry.tensor.element_size());
  }
  return bytes;
}

void Step::load_state(const std::vector<model::Named>& state) {
  optimizer_.load_state(partitioning_ ? partitioning_->partitions_of(state) : state);
  scale_.load_state(state);
}

std::vector<at::Tensor> Step::gradients() const {
  if (partitioning_ && partitioning_->sums_gradients()) return partitioning_->gradients();
  std::vector<at::Tensor> all;
  for (const auto& parameter : trained_) {
    all.push_back((copies_ ? copies_->leaf(parameter.tensor) : parameter.tensor).grad());
  }
  return all;
}

StepResult Step::run(const Samples& samples, double lr, bool want_stop) {
  const double start = base::steady_seconds();
  const double waited = seconds_waited();
  // With virtual ranks no operator of a step, the optimizer's included, may see how many threads a rank has.
  const ThreadScope threads(options_.training.virtual_ranks > 0 ? options_.training.threads_per_slice : 0);
  for (auto& parameter : trained_) {
    at::Tensor leaf = copies_ ? copies_->leaf(parameter.tensor) : parameter.tensor;
    leaf.mutable_grad().reset();
  }
  if (partitioning_) partitioning_->begin_step();
  if (copies_) copies_->refresh();
  if (update_) update_->begin(samples, lr);
  const BatchSums sums = path_->run(samples, scale_.value(), want_stop);

  StepResult result;
  result.samples = sums.samples;
  result.loss = sums.totals[0] / static_cast<double>(std::max<int64_t>(1, result.samples));
  result.figures.assign(sums.totals.begin() + 1, sums.totals.end());
  result.stop = sums.stop;
  finish(result, samples, lr, sums);
  result.communicate_seconds = sums.exposed_seconds + seconds_waited() - waited;
  result.compute_seconds = base::steady_seconds() - start - result.communicate_seconds;
  return result;
}

bool Step::judge(StepResult& result) {
  const bool good = std::isfinite(result.loss) && std::isfinite(result.gradient_norm);
  result.skipped = !good && std::isfinite(result.loss) && scale_.can_shrink();
  result.finite = good || result.skipped;
  scale_.update(good);
  if (!good) path_->drop_statistics();
  return good;
}

// Takes the step with the gradients that every rank now has alike, or its part of them, unless something in it is not
// finite; or only counts it, where the device has taken it.
void Step::finish(StepResult& result, const Samples& samples, double lr, const BatchSums& sums) {
  const auto& training = options_.training;
  double factor = 1 / scale_.value();
  if (result.samples != samples.global_size && result.samples > 0) {  // rows that were not read: a smaller mean
    factor *= static_cast<double>(samples.global_size) / static_cast<double>(result.samples);
  }
  if (sums.updated) {
    result.gradient_norm = *sums.norm * factor;
    if (!judge(result)) return;
    path_->take_statistics(samples);
    if (result.samples > 0) update_->was_taken(samples, sums.finite);
    return;
  }
  auto gradients = this->gradients();
  if (factor != 1) at::_foreach_mul_(gradients, factor);
  result.gradient_norm = sums.norm ? *sums.norm * factor : path_->norm(gradients);
  if (!judge(result)) return;
  if (training.clip_norm > 0) clip_gradients(gradients, result.gradient_norm, training.clip_norm);
  if (training.clip_value > 0) clip_values(gradients, training.clip_value);
  path_->take_statistics(samples);
  if (result.samples == 0) return;  // not one readable sample: nothing to learn from
  update(lr);
  if (options_.ema) options_.ema->update(samples.step);
}

void Step::update(double lr) {
  if (!partitioning_) return optimizer_.step(lr);
  const auto gradients = partitioning_->gradients();
  for (size_t i = 0; i < gradients.size(); ++i) {
    at::Tensor partition = optimizer_.parameters()[i].tensor;
    partition.mutable_grad() = gradients[i];
  }
  optimizer_.step(lr);
  optimizer_.clear_gradients();
  partitioning_->gather();
}

}  // namespace lockstep::step
