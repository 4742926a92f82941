// SPDX-License-Identifier: Apache-2.0
// The one file that knows the inside of libtorch's autograd graph (Node, SavedVariable). Its public custom Function
// does not look into lists, and a block has as many weights as it has.
#include "lockstep/step/recompute.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Generator.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <mutex>
#include <optional>

#include "lockstep/step/precision.h"

namespace lockstep::step {
namespace {

using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

// Where the generators that a block draws from stand.
class RandomState {
 public:
  RandomState(const model::Block& block, at::Device device) {
    keep(block.random ? *block.random : at::globalContext().defaultGenerator(at::kCPU));
    if (!device.is_cpu()) keep(at::globalContext().defaultGenerator(device));
  }
  void restore() const {
    for (const auto& [generator, state] : kept_) {
      at::Generator target = generator;
      const std::scoped_lock lock(target.mutex());
      target.set_state(state);
    }
  }

 private:
  void keep(at::Generator generator) {
    const std::scoped_lock lock(generator.mutex());
    kept_.emplace_back(generator, generator.get_state());
  }
  std::vector<std::pair<at::Generator, at::Tensor>> kept_;
};

// For its lifetime a block has other weights and, where it runs again, scratch copies of its batch-norm statistics.
enum class Statistics { count, scratch };
class Exchanged {
 public:
  Exchanged(model::Block& block, const std::vector<at::Tensor>& weights, Statistics statistics)
      : block_(block), parameters_(block.parameters), buffers_(block.buffers) {
    for (size_t i = 0; i < weights.size(); ++i) block.parameters[i].tensor = weights[i];
    if (statistics == Statistics::count) return;
    for (auto& buffer : block.buffers) buffer.tensor = buffer.tensor.clone();
  }
  ~Exchanged() {
    block_.parameters = std::move(parameters_);
    block_.buffers = std::move(buffers_);
  }
  Exchanged(const Exchanged&) = delete;
  Exchanged& operator=(const Exchanged&) = delete;

 private:
  model::Block& block_;
  std::vector<model::Named> parameters_;
  std::vector<model::Named> buffers_;
};

// One run of one block, as often as needed.
struct Call {
  const model::Network& network;
  size_t block;
  model::Mode mode;
  at::Device device;
  bool autocast;                   // forward ran under it
  WeightSource* source = nullptr;  // null: the network has the weights
  spec::Precision precision = spec::Precision::fp32;

  model::Block& of() const { return *network.blocks()[block]; }
  variable_list run(const at::Tensor& input) const {
    variable_list outputs{network.run(input, mode, block, block + 1)};
    for (auto& logits : of().take_auxiliary()) outputs.push_back(std::move(logits));
    return outputs;
  }
};

variable_list weights_of(const model::Block& block) {
  variable_list weights;
  for (const auto& parameter : block.parameters) weights.push_back(parameter.tensor);
  return weights;
}

bool any_requires_grad(const variable_list& tensors) {
  for (const auto& tensor : tensors) {
    if (tensor.requires_grad()) return true;
  }
  return false;
}

// The block's place in the graph: backward runs it again and differentiates that run. Its inputs are the block's input
// and its weights, so that each weight's gradient arrives where it always does, once: the reducer waits there. Weights
// that come from a source are no inputs; the source gets their gradients.
class RecomputeBackward final : public torch::autograd::Node {
 public:
  RecomputeBackward(const Call& call, const variable_list& inputs) : call_(call), random_(call.of(), call.device) {
    for (const auto& input : inputs) inputs_.emplace_back(input, /*is_output=*/false);
    set_next_edges(torch::autograd::collect_next_edges(inputs));
  }

  variable_list apply(variable_list&& gradients) override {
    variable_list leaves;
    for (auto& input : inputs_) {
      const at::Tensor kept = input.unpack();
      leaves.push_back(kept.detach().requires_grad_(kept.requires_grad()));
    }
    if (!call_.source) return differentiate(leaves, run_again(leaves), gradients);
    for (auto& weight : call_.source->weights(call_.block, WeightSource::Pass::backward)) {
      leaves.push_back(weight.detach().requires_grad_(true));
    }
    variable_list all = differentiate(leaves, run_again(leaves), gradients);
    call_.source->take_gradients(call_.block, {all.begin() + 1, all.end()});
    all.resize(1);
    return all;
  }
  void release_variables() override {
    for (auto& input : inputs_) input.reset_data();
  }

 private:
  variable_list run_again(const variable_list& leaves) const {
    const c10::AutoGradMode with_graph(true);
    const Exchanged exchanged(call_.of(), {leaves.begin() + 1, leaves.end()}, Statistics::scratch);
    std::optional<WeightCasts> casts;
    if (call_.source) casts.emplace(call_.of(), call_.precision);
    std::optional<Autocast> autocast;
    if (call_.autocast) autocast.emplace(call_.device);
    const RandomState now(call_.of(), call_.device);
    random_.restore();
    variable_list outputs = call_.run(leaves[0]);
    now.restore();
    return outputs;
  }

  // The gradients of all inputs, in order; undefined for those that need none.
  static variable_list differentiate(const variable_list& leaves, const variable_list& outputs,
                                     const variable_list& gradients) {
    variable_list wanted, reached, directions;
    for (const auto& leaf : leaves) {
      if (leaf.requires_grad()) wanted.push_back(leaf);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!gradients[i].defined()) continue;  // nothing was made of this output
      reached.push_back(outputs[i]);
      directions.push_back(gradients[i]);
    }
    const variable_list found = torch::autograd::grad(reached, wanted, directions, /*retain_graph=*/std::nullopt,
                                                      /*create_graph=*/false, /*allow_unused=*/true);
    variable_list all(leaves.size());
    for (size_t i = 0, k = 0; i < leaves.size(); ++i) {
      if (!leaves[i].requires_grad()) continue;
      all[i] = i == 0 ? found[k] : owned(found[k]);
      ++k;
    }
    return all;
  }

  // With one sample a weight that is added to a value gets the value's gradient itself, and others look into the same
  // memory. In the whole graph autograd sees them and copies; here they are out of its sight, and the next micro-batch
  // would be added into what is theirs.
  static at::Tensor owned(const at::Tensor& gradient) {
    const bool shared = gradient.defined() && gradient.has_storage() && gradient.storage().use_count() > 1;
    return shared ? gradient.clone() : gradient;
  }

  Call call_;
  RandomState random_;
  std::vector<SavedVariable> inputs_;
};

BlockOutput block_output(const variable_list& outputs) {
  BlockOutput result{outputs[0], {}};
  result.auxiliary.assign(outputs.begin() + 1, outputs.end());
  return result;
}

}  // namespace

std::vector<bool> recomputed_blocks(const model::Network& network, const std::vector<std::string>& names) {
  std::vector<bool> chosen(network.blocks().size(), false);
  for (const auto& name : names) {
    if (name == "all") {
      chosen.assign(chosen.size(), true);
    } else {
      chosen[network.index_of(name)] = true;
    }
  }
  return chosen;
}

BlockOutput recomputed(const model::Network& network, size_t block, const at::Tensor& input, model::Mode mode) {
  const Call call{network, block, mode, input.device(), at::autocast::is_autocast_enabled(input.device().type())};
  variable_list inputs = weights_of(call.of());
  inputs.insert(inputs.begin(), input);
  variable_list outputs;
  if (!any_requires_grad(inputs)) {
    outputs = call.run(input);
  } else {
    const std::shared_ptr<RecomputeBackward> node(new RecomputeBackward(call, inputs), torch::autograd::deleteNode);
    {
      const c10::AutoGradMode without_graph(false);
      outputs = call.run(input);
    }
    for (auto& output : outputs) torch::autograd::set_history(output, node);
  }
  return block_output(outputs);
}

BlockOutput gathered(const model::Network& network, size_t block, const at::Tensor& input, model::Mode mode,
                     spec::Precision precision, WeightSource& source) {
  const bool autocast = at::autocast::is_autocast_enabled(input.device().type());
  const Call call{network, block, mode, input.device(), autocast, &source, precision};
  const std::shared_ptr<RecomputeBackward> node(new RecomputeBackward(call, {input}), torch::autograd::deleteNode);
  variable_list outputs;
  {
    const c10::AutoGradMode without_graph(false);
    const Exchanged exchanged(call.of(), source.weights(block, WeightSource::Pass::forward), Statistics::count);
    const WeightCasts casts(call.of(), precision);
    outputs = call.run(input);
  }
  for (auto& output : outputs) torch::autograd::set_history(output, node);
  return block_output(outputs);
}

}  // namespace lockstep::step
