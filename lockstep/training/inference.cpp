// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/inference.h"

#include <c10/core/GradMode.h>

#include "lockstep/step/evaluate.h"
#include "lockstep/step/samples.h"

namespace lockstep::training {

Inference::Inference(const Trained& trained, at::Device device) : trained_(trained), device_(device) {
  const c10::AutoGradMode no_gradients(false);
  casts_.emplace(trained.network, trained.job.training.precision);
}

objective::HostRows Inference::outputs(const loader::Batch& batch) const {
  const c10::AutoGradMode no_gradients(false);
  const spec::Precision precision = trained_.job.training.precision;
  const step::PassPrecision scope(trained_.network, precision, device_, 0);  // of no block: casts_ has them
  const auto samples = step::to_samples(batch, device_);
  return trained_.objective->predicted(step::evaluate_pass(trained_.network, samples.fields, *trained_.objective,
                                                           {precision, trained_.job.evaluation.views}));
}

}  // namespace lockstep::training
