// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lockstep/model/network.h"
#include "lockstep/spec/job.h"
#include "lockstep/step/trust.h"
#include "lockstep/step/weight_copies.h"

namespace lockstep::step {

using Rates = std::map<std::string, double>;

// SGD (momentum, Nesterov), AdamW, LARS or LAMB over a fixed list of parameters, equal to torch.optim's and timm's
// (tests/oracles/optimizers.py). Norms and biases (tensors of at most one dimension) are not decayed unless the job
// says so, and have no trust ratio. SGD and LARS keep the momentum apart from the learning rate (v = m v + g;
// w -= lr v): a change of rate needs no correction of v. Not thread-safe.
class Optimizer {
 public:
  // `norms` measures layers for LARS and LAMB; not given: as the tensors lie here, whole. `rates`: by the name of a
  // parameter, its share of the rate; those left out have all of it.
  Optimizer(const spec::Optimizer& options, std::vector<model::Named> parameters, Norms norms = {},
            const Rates& rates = {});

  // REQUIRES: every parameter has its gradient. LARS changes the gradients.
  void step(double lr);
  // The same on the device, with what `numbers` say (kernel/update.h), the weights' copies in the same pass. The caller
  // counts the step once it knows that it was taken. REQUIRES: can_step_there.
  void step_there(const at::Tensor& numbers, const WeightCopies& copies, double clip_value);
  static bool can_step_there(const spec::Optimizer& options);
  void count_step() { num_steps_.add_(1); }
  int64_t num_steps() const { return *num_steps_.const_data_ptr<int64_t>(); }
  void clear_gradients();
  std::vector<at::Tensor> gradients() const;
  const std::vector<model::Named>& parameters() const { return parameters_; }

  // What a resume needs: "momentum.<parameter>", "exp_avg.<parameter>", ..., "steps". The tensors are the live ones.
  std::vector<model::Named> state() const;
  // User error naming the first tensor that is missing or has another shape.
  void load_state(const std::vector<model::Named>& state);

 private:
  struct Group {                     // what the fused kernels take: lists side by side
    std::vector<size_t> members;     // indices into parameters_
    Layers layers;                   // gradients only while a step is taken
    std::vector<at::Tensor> steps;   // adamw
    std::vector<at::Tensor> copies;  // what step_there writes besides, once it was called
    double rate = 1;                 // share of the learning rate
  };
  bool has_two_moments() const;
  bool is_rmsprop() const;
  void add_group(double weight_decay, double rate, const std::vector<size_t>& members);
  void check_gradient(const at::Tensor& gradient, size_t parameter) const;
  void take_gradients(Group& group) const;
  void step_sgd(Group& group, double weight_decay, double lr) const;
  void step_adamw(Group& group, double lr) const;
  void step_rmsprop(Group& group, double lr) const;

  spec::Optimizer options_;
  std::vector<model::Named> parameters_;
  Norms norms_;
  std::vector<Group> groups_;
  at::Tensor num_steps_;  // int64 scalar, lives in the state
};

// What training.optimizer.layer_decay makes of the blocks of a network: empty where it is 1.
Rates layer_rates(const spec::Optimizer& options, const model::Network& network);

std::vector<double> norms_of(const std::vector<at::Tensor>& tensors);

// The square root of the sum of all squares.
double global_norm(const std::vector<at::Tensor>& tensors);
at::Tensor global_norm_there(const std::vector<at::Tensor>& tensors);  // on their device, a scalar; REQUIRES: some

// Scales all gradients so that their global norm is at most `limit`, as torch.nn.utils.clip_grad_norm_.
void clip_gradients(std::vector<at::Tensor>& gradients, double norm, double limit);
// Brings each element into [-limit, limit], as torch.nn.utils.clip_grad_value_.
void clip_values(std::vector<at::Tensor>& gradients, double limit);

}  // namespace lockstep::step
