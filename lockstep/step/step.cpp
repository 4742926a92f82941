// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/step.h"

#include <ATen/ops/_foreach_mul.h>

#include <cmath>

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

}  // namespace

Step::Step(model::Network& network, comm::Group& group, StepOptions options)
    : group_(group),
      options_(std::move(options)),
      optimizer_(options_.training.optimizer, trained_parameters(network, options_.train_from),
                 options_.training.virtual_ranks > 0 ? Norms(chunk_norms) : Norms()),
      path_(make_gradient_path(with_batch_norm(network, options_.training, group), optimizer_.parameters(), group,
                               options_)),
      scale_(options_.training.precision == spec::Precision::amp && options_.device.is_cuda()) {}

std::vector<model::Named> Step::state() const {
  auto all = optimizer_.state();
  for (auto& entry : scale_.state()) all.push_back(std::move(entry));
  return all;
}

void Step::load_state(const std::vector<model::Named>& state) {
  optimizer_.load_state(state);
  scale_.load_state(state);
}

StepResult Step::run(const Samples& samples, double lr, bool want_stop) {
  const double start = steady_seconds();
  const double waited = group_.seconds_waited();
  // With virtual ranks no operator of a step, the optimizer's included, may see how many threads a rank has.
  const ThreadScope threads(options_.training.virtual_ranks > 0 ? options_.training.threads_per_slice : 0);
  optimizer_.clear_gradients();
  const BatchSums sums = path_->run(samples, scale_.value(), want_stop);

  StepResult result;
  result.correct = sums.rows.correct;
  result.samples = sums.rows.samples;
  result.loss = sums.rows.loss / static_cast<double>(std::max<int64_t>(1, result.samples));
  result.stop = sums.stop;
  finish(result, samples, lr);
  result.communicate_seconds = sums.exposed_seconds + group_.seconds_waited() - waited;
  result.compute_seconds = steady_seconds() - start - result.communicate_seconds;
  return result;
}

// Takes the step with the gradients that every rank now has alike, unless something in it is not finite.
void Step::finish(StepResult& result, const Samples& samples, double lr) {
  const auto& training = options_.training;
  auto gradients = optimizer_.gradients();
  double factor = 1 / scale_.value();
  if (result.samples != samples.global_size && result.samples > 0) {  // rows without a target: a smaller mean
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
  optimizer_.step(lr);
  if (options_.ema) options_.ema->update(samples.step);
}

}  // namespace lockstep::step
