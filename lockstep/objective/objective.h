// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/model/named_tensors.h"
#include "lockstep/spec/job.h"

namespace lockstep::objective {

// Which batch it is: with the job's seed, what random choices of a loss depend on.
struct BatchPosition {
  int64_t epoch = 0;
  int64_t step = 0;
};

// An output of the network for the samples of a batch, in main memory: float [rows, width].
using HostRows = std::vector<model::Named>;

// The half of a task that needs libtorch: from fields and a network's outputs to sums over the rows. Shapes are fixed
// and nothing waits for the device, so that a step can be planned and captured. Rows that have no part (the encoder
// left them blank) count for nothing. Calls may come from any thread.
class Objective {
 public:
  virtual ~Objective() = default;

  // Of the network, without which there is no loss.
  virtual std::vector<std::string> outputs() const { return {"output"}; }

  // What the network is shown instead of the batch, while training from its first block: images mixed with each other.
  // May add fields for its own loss().
  virtual model::NamedTensors prepare(model::NamedTensors fields, const BatchPosition&) const { return fields; }
  // The SUM over the rows, a scalar that carries the gradient: the step divides by the samples of the whole batch, so
  // that summing over ranks is all that is left to do.
  virtual at::Tensor loss(const model::NamedTensors& outputs, const model::NamedTensors& fields,
                          const BatchPosition& position) const = 0;

  // Whether every batch of a shape is the same operators with the same numbers on the host: then a GPU may replay them.
  virtual bool same_for_all_batches() const { return true; }

  // Further sums over the rows, on the device, scalars: figures() names what each is when divided by the samples.
  virtual std::vector<std::string> figures() const = 0;                          // "accuracy"
  virtual std::string figure_text(const std::string& name, double value) const;  // for people: "accuracy 98.4 %"
  virtual std::vector<at::Tensor> sums(const model::NamedTensors& outputs, const model::NamedTensors& fields) const = 0;

  // What counts as the outputs for samples that the network was shown in several ways (evaluation.views).
  virtual model::NamedTensors average(const std::vector<model::NamedTensors>& views) const;
  // The loss per sample of a network that says the same of every sample, none being likelier than another: training
  // that stays above it has learnt nothing. None where there is no such figure.
  virtual std::optional<double> uninformed_loss() const { return std::nullopt; }

  // What the score, and what a prediction, is made from.
  virtual HostRows scored(const model::NamedTensors& outputs) const = 0;
  virtual HostRows predicted(const model::NamedTensors& outputs) const { return scored(outputs); }
};

// `classes`: label -> name, for training.class_weights; without them every class weighs the same. User error when the
// job's network does not give what the task learns from.
std::shared_ptr<const Objective> make_objective(const spec::Job& job, const std::vector<std::string>& classes = {});

// [rows, width] floats in main memory.
at::Tensor host_rows(const at::Tensor& output);

}  // namespace lockstep::objective
