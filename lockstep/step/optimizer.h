// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "lockstep/model/network.h"
#include "lockstep/spec/job.h"

namespace lockstep::step {

// SGD (momentum, Nesterov) or AdamW over a fixed list of parameters, equal to torch.optim's to the last bits
// (tests/oracles/optimizers.py). Norms and biases (tensors of at most one dimension) are not decayed unless the job
// says so. Not thread-safe.
class Optimizer {
 public:
  Optimizer(const spec::Optimizer& options, std::vector<model::Named> parameters);

  void step(double lr);  // REQUIRES: every parameter has its gradient
  void clear_gradients();
  std::vector<at::Tensor> gradients() const;
  const std::vector<model::Named>& parameters() const { return parameters_; }

  // What a resume needs: "momentum.<parameter>", "exp_avg.<parameter>", ..., "steps". The tensors are the live ones.
  std::vector<model::Named> state() const;
  // User error naming the first tensor that is missing or has another shape.
  void load_state(const std::vector<model::Named>& state);

 private:
  struct Group {  // what the fused kernels take: lists side by side
    double weight_decay = 0;
    std::vector<size_t> members;  // indices into parameters_
    std::vector<at::Tensor> parameters, first, second, steps;
  };
  void add_group(double weight_decay, const std::vector<size_t>& members);
  void step_sgd(Group& group, std::vector<at::Tensor>& gradients, double lr) const;
  void step_adamw(Group& group, std::vector<at::Tensor>& gradients, double lr) const;

  spec::Optimizer options_;
  std::vector<model::Named> parameters_;
  std::vector<Group> groups_;
  at::Tensor num_steps_;  // int64 scalar, lives in the state
};

// The square root of the sum of all squares.
double global_norm(const std::vector<at::Tensor>& tensors);

// Scales all gradients so that their global norm is at most `limit`, as torch.nn.utils.clip_grad_norm_.
void clip_gradients(std::vector<at::Tensor>& gradients, double norm, double limit);

}  // namespace lockstep::step
