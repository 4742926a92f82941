// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "lockstep/loader/batch.h"
#include "lockstep/objective/objective.h"
#include "lockstep/step/precision.h"
#include "lockstep/training/trained.h"

namespace lockstep::training {

// A trained network at work: batches in, what predictions are made from out. Weights are cast to the job's precision
// once. One thread at a time, whichever it is.
class Inference {
 public:
  Inference(const Trained& trained, at::Device device);  // `trained` must outlive it
  objective::HostRows outputs(const loader::Batch& batch) const;

 private:
  const Trained& trained_;
  at::Device device_;
  std::optional<step::WeightCasts> casts_;
};

}  // namespace lockstep::training
