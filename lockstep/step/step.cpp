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
const model::Network& with_batch_norm(model::Network& network, const spec::Training& training, comm::Group& group) {
  network.use_batch_norm(batch_norm_rule(training, group));
  return network;
}

std::unique_ptr<Shards> make_shards(model::Network& network, comm::Group& group, const StepOptions& options) {
  if (options.training.zero == 0 || group.size() == 1) return nullptr;
  base::ensure(options.training.zero < 3 || !options.ema, "a moving average has whole weights to follow");
  return std::make_unique<Shards>(network, options.train_from, group, options.training.zero);
}

// How LARS and LAMB measure layers, also those of which a rank has pieces.
Norms norms_for(const spec::Training& training, const Shards* shards) {
  const bool exact = training.virtual_ranks > 0;
  if (!shards) return exact ? Norms(chunk_norms) : Norms();
  return [shards, exact](const std::vector<at::Tensor>& pieces) {
    return exact ? shards->chunk_norms(pieces) : shards->norms(pieces);
  };
}

}  // namespace

Step::Step(model::Network& network, comm::Group& group, StepOptions options)
    : group_(group),
      options_(std::move(options)),
      trained_(trained_parameters(network, options_.train_from)),
      shards_(make_shards(network, group, options_)),
      optimizer_(options_.training.optimizer, shards_ ? shards_->pieces() : trained_,
                 norms_for(options_.training, shards_.get())),
      path_(make_gradient_path(with_batch_norm(network, options_.training, group), trained_, group, options_,
                               shards_.get())),
      scale_(options_.training.precision == spec::Precision::amp && options_.device.is_cuda()) {}

void Step::assemble() {
  if (shards_) shards_->assemble();
}

std::vector<model::Named> Step::state(const Wanted& wanted) const {
  auto all = optimizer_.state();
  if (shards_) all = shards_->whole_state(all, wanted);
  for (auto& entry : scale_.state()) all.push_back(std::move(entry));
  std::erase_if(all, [&](const model::Named& entry) { return !wanted(entry.name); });
  return all;
}

CutState Step::cut_state() const {
  base::ensure(shards_ != nullptr, "a state in pieces is one of several ranks with training.zero");
  auto all = optimizer_.state();
  for (auto& entry : scale_.state()) all.push_back(std::move(entry));
  return {*shards_, all};
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
  optimizer_.load_state(shards_ ? shards_->pieces_of(state) : state);
  scale_.load_state(state);
}

std::vector<at::Tensor> Step::gradients() const {
  if (shards_ && shards_->sums_gradients()) return shards_->gradients();
  std::vector<at::Tensor> all;
  for (const auto& parameter : trained_) all.push_back(parameter.tensor.grad());
  return all;
}

StepResult Step::run(const Samples& samples, double lr, bool want_stop) {
  const double start = base::steady_seconds();
  const double waited = seconds_waited();
  // With virtual ranks no operator of a step, the optimizer's included, may see how many threads a rank has.
  const ThreadScope threads(options_.training.virtual_ranks > 0 ? options_.training.threads_per_slice : 0);
  for (auto& parameter : trained_) parameter.tensor.mutable_grad().reset();
  if (shards_) shards_->begin_step();
  const BatchSums sums = path_->run(samples, scale_.value(), want_stop);

  StepResult result;
  result.samples = sums.samples;
  result.loss = sums.totals[0] / static_cast<double>(std::max<int64_t>(1, result.samples));
  result.figures.assign(sums.totals.begin() + 1, sums.totals.end());
  result.stop = sums.stop;
  finish(result, samples, lr);
  result.communicate_seconds = sums.exposed_seconds + seconds_waited() - waited;
  result.compute_seconds = base::steady_seconds() - start - result.communicate_seconds;
  return result;
}

// Takes the step with the gradients that every rank now has alike, or its part of them, unless something in it is not
// finite.
void Step::finish(StepResult& result, const Samples& samples, double lr) {
  const auto& training = options_.training;
  auto gradients = this->gradients();
  double factor = 1 / scale_.value();
  if (result.samples != samples.global_size && result.samples > 0) {  // rows that were not read: a smaller mean
    factor *= static_cast<double>(samples.global_size) / static_cast<double>(result.samples);
  }
  if (factor != 1) at::_foreach_mul_(gradients, factor);
  result.gradient_norm = path_->norm(gradients);
  const bool good = std::isfinite(result.loss) && std::isfinite(result.gradient_norm);
  result.skipped = !good && std::isfinite(result.loss) && scale_.can_shrink();
  result.finite = good || result.skipped;
  scale_.update(good);
  if (!good) {
    path_->drop_statistics();
    return;
  }
  if (training.clip_norm > 0) clip_gradients(gradients, result.gradient_norm, training.clip_norm);
  path_->take_statistics(samples);
  if (result.samples == 0) return;  // not one readable sample: nothing to learn from
  update(lr);
  if (options_.ema) options_.ema->update(samples.step);
}

void Step::update(double lr) {
  if (!shards_) return optimizer_.step(lr);
  const auto gradients = shards_->gradients();
  for (size_t i = 0; i < gradients.size(); ++i) {
    at::Tensor piece = optimizer_.parameters()[i].tensor;
    piece.mutable_grad() = gradients[i];
  }
  optimizer_.step(lr);
  optimizer_.clear_gradients();
  shards_->gather();
}

}  // namespace lockstep::step
