// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>

#include "lockstep/loader/batch.h"
#include "lockstep/model/frozen.h"
#include "lockstep/objective/objective.h"
#include "lockstep/step/precision.h"
#include "lockstep/training/trained.h"

namespace lockstep::training {

// A trained network at work: batches in, what predictions are made from out. Weights are cast to the job's precision
// once; on a CPU, in fp32 and bf16, the network is frozen (model/frozen.h). From any thread.
class Inference {
 public:
  Inference(const Trained& trained, at::Device device);  // `trained` must outlive it, and nobody else cast its weights
  // What the task makes predictions of, for a batch, or for its fields on the device.
  objective::HostRows outputs(const loader::Batch& batch) const;
  objective::HostRows outputs(const model::NamedTensors& fields) const;
  // What the network itself gives, bit by bit as in an evaluation; with `features` also what its head takes.
  model::NamedTensors evaluated(const model::NamedTensors& fields, at::Tensor* features = nullptr) const;

 private:
  model::NamedTensors pass(const model::NamedTensors& fields, at::Tensor* features, model::FrozenNetwork* frozen) const;

  const Trained& trained_;
  at::Device device_;
  std::optional<step::WeightCasts> casts_;
  std::unique_ptr<model::FrozenNetwork> frozen_;  // none: the network runs as it is
};

}  // namespace lockstep::training
