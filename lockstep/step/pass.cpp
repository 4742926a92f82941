// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/pass.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "lockstep/step/precision.h"
#include "lockstep/step/recompute.h"

namespace lockstep::step {

std::shared_ptr<const objective::Objective> objective_of(const StepOptions& options) {
  if (options.objective) return options.objective;
  spec::Job job;
  job.training = options.training;
  return objective::make_objective(job);
}

PassSums& PassSums::operator+=(const PassSums& other) {
  if (other.totals.defined()) totals = totals.defined() ? totals + other.totals : other.totals;
  samples += other.samples;
  return *this;
}

Pass::Pass(const model::Network& network, const StepOptions& options, WeightSource* source)
    : network_(network),
      options_(options),
      source_(source),
      objective_(objective_of(options)),
      recomputed_(recomputed_blocks(network, options.training.recompute)) {}

PassSums Pass::run(const Samples& part, double divisor, const at::Tensor& scale) const {
  const objective::BatchPosition position{part.epoch, part.step};
  const model::NamedTensors fields = part.from == 0 ? objective_->prepare(part.fields, position) : part.fields;
  model::NamedTensors outputs;
  at::Tensor loss;
  {
    // A source's weights are cast as they come, the network has those of frozen blocks only.
    const size_t own = source_ ? options_.train_from : network_.blocks().size();
    const PassPrecision precision(network_, options_.training.precision, options_.device, own, options_.copies);
    outputs = forward(part, fields);
    loss = objective_->loss(outputs, fields, position);
  }
  (scale.defined() ? loss / divisor * scale : loss / divisor).backward();
  std::vector<at::Tensor> totals{loss.detach().to(at::kDouble)};
  for (const at::Tensor& sum : objective_->sums(outputs, fields)) totals.push_back(sum.to(at::kDouble));
  return {at::stack(totals), part.num_read()};
}

model::NamedTensors Pass::forward(const Samples& part, const model::NamedTensors& fields) const {
  const size_t first = std::max(part.from, options_.train_from);
  model::Bundle values = network_.cast(part.from == 0 ? network_.inputs_from(fields) : part.features,
                                       compute_type(options_.training.precision), part.from);
  {
    const c10::AutoGradMode frozen(false);
    values = network_.run(std::move(values), model::Mode::frozen, part.from, first);
  }
  const model::Mode mode = options_.freeze_norm ? model::Mode::frozen : model::Mode::train;
  for (size_t i = first; i < network_.blocks().size(); ++i) {
    if (source_ && source_->holds(i)) {
      values = gathered(network_, i, values, mode, options_.training.precision, *source_);
    } else if (recomputed_[i]) {
      values = recomputed(network_, i, values, mode);
    } else {
      values = network_.run(values, mode, i, i + 1);
    }
  }
  return network_.outputs_from(values, mode);
}

}  // namespace lockstep::step
