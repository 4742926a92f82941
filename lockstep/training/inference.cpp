// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/inference.h"

#include <c10/core/GradMode.h>

#include "lockstep/step/evaluate.h"
#include "lockstep/step/samples.h"

namespace lockstep::training {

Inference::Inference(const Trained& trained, at::Device device) : trained_(trained), device_(device) {
  const c10::AutoGradMode no_gradients(false);
  const spec::Precision precision = trained.job.training.precision;
  casts_.emplace(trained.network, precision);
  const bool is_plain =
      precision == spec::Precision::fp32 || precision == spec::Precision::tf32 || precision == spec::Precision::bf16;
  if (is_plain && device.is_cpu() && model::FrozenNetwork::takes(trained.network)) {
    frozen_ = std::make_unique<model::FrozenNetwork>(trained.network);
  }
}

model::NamedTensors Inference::pass(const model::NamedTensors& fields, at::Tensor* features,
                                    model::FrozenNetwork* frozen) const {
  const c10::AutoGradMode no_gradients(false);
  const spec::Precision precision = trained_.job.training.precision;
  const step::PassPrecision scope(trained_.network, precision, device_, 0);  // of no block: casts_ has them
  return step::evaluate_pass(trained_.network, fields, *trained_.objective,
                             {precision, trained_.job.evaluation.views, features, frozen});
}

model::NamedTensors Inference::evaluated(const model::NamedTensors& fields, at::Tensor* features) const {
  return pass(fields, features, nullptr);
}

objective::HostRows Inference::outputs(const model::NamedTensors& fields) const {
  const c10::AutoGradMode no_gradients(false);
  return trained_.objective->predicted(pass(fields, nullptr, frozen_.get()));
}

objective::HostRows Inference::outputs(const loader::Batch& batch) const {
  return outputs(step::to_samples(batch, device_).fields);
}

}  // namespace lockstep::training
