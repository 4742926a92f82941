// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/pass.h"

#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "lockstep/objective/classify.h"
#include "lockstep/step/precision.h"
#include "lockstep/step/recompute.h"

namespace lockstep::step {

PassSums& PassSums::operator+=(const PassSums& other) {
  loss += other.loss;
  correct += other.correct;
  samples += other.samples;
  return *this;
}

Pass::Pass(const model::Network& network, const StepOptions& options, WeightSource* source)
    : network_(network),
      options_(options),
      source_(source),
      recomputed_(recomputed_blocks(network, options.training.recompute)) {}

PassSums Pass::run(const Samples& part, double divisor) const {
  const auto& training = options_.training;
  std::optional<objective::Mix> mix;
  at::Tensor values = part.values;
  if (values.dim() == 4 && part.from == 0) {
    mix = objective::draw_mix(training, part.epoch, part.step, part.targets, values.size(2));
    if (mix) values = objective::mix_images(values, *mix);
  }
  model::Output output;
  at::Tensor loss;
  {
    // A source's weights are cast as they come, the network has those of frozen blocks only.
    const size_t own = source_ ? options_.train_from : network_.blocks().size();
    const PassPrecision precision(network_, training.precision, options_.device, own);
    output = forward(part, values);
    loss = objective::cross_entropy_sum(
        output.logits, output.auxiliary, part.targets, mix,
        {.label_smoothing = training.label_smoothing, .auxiliary_weight = training.auxiliary_weight});
  }
  (loss / divisor).backward();
  PassSums sums;
  sums.loss = loss.item<double>();
  sums.correct = objective::count_correct(output.logits, part.targets);
  sums.samples = part.targets.ge(0).sum().item<int64_t>();
  return sums;
}

model::Output Pass::forward(const Samples& part, const at::Tensor& values) const {
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
    if (source_ && source_->holds(i)) {
      block = gathered(network_, i, value, mode, options_.training.precision, *source_);
    } else if (recomputed_[i]) {
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

}  // namespace lockstep::step
