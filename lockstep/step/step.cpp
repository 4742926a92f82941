// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/step.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/random.h"
#include "lockstep/step/precision.h"
#include "lockstep/step/recompute.h"
#include "lockstep/task/classify.h"

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

std::vector<at::Tensor> tensors_of(const std::vector<model::Named>& named) {
  std::vector<at::Tensor> tensors;
  for (const auto& entry : named) tensors.push_back(entry.tensor);
  return tensors;
}

Samples slice(const Samples& samples, int64_t start, int64_t rows) {
  Samples part = samples;
  part.values = samples.values.narrow(0, start, rows);
  part.targets = samples.targets.narrow(0, start, rows);
  return part;
}

}  // namespace

Samples to_samples(const data::Batch& batch, at::Device device) {
  const int64_t size = batch.image_size;
  // from_blob wants pointers to non-const; nobody writes through them.
  const at::Tensor pixels = at::from_blob(const_cast<float*>(batch.images.data()), {batch.size(), size, size, 3});
  const at::Tensor labels = at::from_blob(const_cast<int64_t*>(batch.targets.data()), {batch.size()}, at::kLong);
  return {batch.step, batch.epoch, batch.global_size, pixels.permute({0, 3, 1, 2}).to(device), labels.to(device), 0};
}

Step::Step(model::Network& network, comm::Group& group, StepOptions options)
    : network_(network),
      group_(group),
      options_(std::move(options)),
      optimizer_(options_.training.optimizer, trained_parameters(network, options_.train_from)),
      reducer_(tensors_of(optimizer_.parameters()), group),
      statistics_(network, options_.freeze_norm ? network.blocks().size() : options_.train_from),
      scale_(options_.training.precision == spec::Precision::amp && options_.device.is_cuda()),
      recomputed_(recomputed_blocks(network, options_.training.recompute)) {}

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
  // Dropout draws from libtorch's generator: its numbers belong to (seed, step, rank), resumed or not.
  base::Random random(base::derive_seed(static_cast<uint64_t>(options_.training.seed), "dropout"),
                      static_cast<uint32_t>(group_.rank()), static_cast<uint64_t>(samples.step));
  at::manual_seed(random.bits64());

  optimizer_.clear_gradients();
  statistics_.keep();
  const Sums sums = accumulate_gradients(samples);
  at::Tensor totals = at::tensor(
      {sums.loss, static_cast<double>(sums.correct), static_cast<double>(sums.samples), want_stop ? 1.0 : 0.0},
      at::kDouble);
  group_.all_reduce_sum(totals);

  StepResult result;
  result.correct = totals[1].item<int64_t>();
  result.samples = totals[2].item<int64_t>();
  result.loss = totals[0].item<double>() / static_cast<double>(std::max<int64_t>(1, result.samples));
  result.stop = totals[3].item<double>() > 0;
  finish(result, samples, lr);
  result.communicate_seconds = exposed_seconds_ + group_.seconds_waited() - waited;
  result.compute_seconds = steady_seconds() - start - result.communicate_seconds;
  return result;
}

Step::Sums Step::accumulate_gradients(const Samples& samples) {
  Sums sums;
  const int64_t rows = samples.rows();
  const int64_t micro = options_.training.micro_batch > 0 ? options_.training.micro_batch : std::max<int64_t>(1, rows);
  for (int64_t start = 0; start < rows; start += micro) {
    const int64_t count = std::min(micro, rows - start);
    if (start + count == rows) reducer_.prepare();  // only the last backward of a step is reduced: it has the sum
    pass(slice(samples, start, count), samples.global_size, sums);
  }
  if (rows == 0) pass_nothing();
  exposed_seconds_ = reducer_.exposed_seconds(steady_seconds());
  return sums;
}

// A micro-batch forward and backward.
void Step::pass(const Samples& part, int64_t global_size, Sums& sums) {
  const auto& training = options_.training;
  std::optional<task::Mix> mix;
  at::Tensor values = part.values;
  if (values.dim() == 4 && part.from == 0) {
    mix = task::draw_mix(training, part.epoch, part.step, part.targets, values.size(2));
    if (mix) values = task::mix_images(values, *mix);
  }
  model::Output output;
  at::Tensor loss;
  {
    const PassPrecision precision(network_, training.precision, options_.device);
    output = forward(part, values);
    loss = task::cross_entropy_sum(
        output.logits, output.auxiliary, part.targets, mix,
        {.label_smoothing = training.label_smoothing, .auxiliary_weight = training.auxiliary_weight});
  }
  (loss / (static_cast<double>(global_size) / scale_.value())).backward();
  sums.loss += loss.item<double>();
  sums.correct += task::count_correct(output.logits, part.targets);
  sums.samples += part.targets.ge(0).sum().item<int64_t>();
}

// A rank without rows (the last batch may be smaller than the ranks are many) adds zeros to every sum.
void Step::pass_nothing() {
  reducer_.prepare();
  at::Tensor zero = at::zeros({}, at::TensorOptions(options_.device));
  for (const auto& parameter : optimizer_.parameters()) zero = zero + (parameter.tensor * 0).sum();
  zero.backward();
}

model::Output Step::forward(const Samples& part, const at::Tensor& values) const {
  const size_t first = std::max(part.from, options_.train_from);
  at::Tensor value = values.to(compute_type(options_.training.precision));
  {
    const c10::AutoGradMode frozen(false);
    value = network_.run(value, model::Mode::evaluate, part.from, first);
  }
  model::Output output;
  const model::Mode mode = options_.freeze_norm ? model::Mode::evaluate : model::Mode::train;
  for (size_t i = first; i < network_.blocks().size(); ++i) {
    BlockOutput block;
    if (recomputed_[i]) {
      block = recomputed(network_, i, value, mode);
    } else {
      block.value = network_.run(value, mode, i, i + 1);
      block.auxiliary = network_.blocks()[i]->take_auxiliary();
    }
    value = std::move(block.value);
    std::move(block.auxiliary.begin(), block.auxiliary.end(), std::back_inserter(output.auxiliary));
  }
  output.logits = value;
  return output;
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
  result.gradient_norm = global_norm(gradients);
  const bool good = std::isfinite(result.loss) && std::isfinite(result.gradient_norm);
  result.skipped = !good && std::isfinite(result.loss) && scale_.can_shrink();
  result.finite = good || result.skipped;
  scale_.update(good);
  if (!good) {
    statistics_.restore();
    return;
  }
  if (training.clip_norm > 0) clip_gradients(gradients, result.gradient_norm, training.clip_norm);
  statistics_.merge(group_, samples.rows(), samples.global_size);
  if (result.samples == 0) return;  // not one readable sample: nothing to learn from
  optimizer_.step(lr);
  if (options_.ema) options_.ema->update(samples.step);
}

}  // namespace lockstep::step
