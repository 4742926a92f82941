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
#include <algorithm>

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
  model::Bundle run(const model::Bundle& input) const { return network.run(input, mode, block, block + 1); }
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

// An entry that the block gives on as it came stays what it was: it is no output of the block.
bool is_given_on(const at::Tensor& output, const model::Bundle& input) {
  return std::any_of(input.begin(), input.end(), [&](const at::Tensor& entry) { return entry.is_same(output); });
}

// The block's position in the graph: backward runs it again and differentiates that run. Its inputs are the block's
// bundle and its weights, so that each weight's gradient arrives where it always does, once: the reducer waits there.
// Weights that come from a source are no inputs; the source gets their gradients.
class RecomputeBackward final : public torch::autograd::Node {
 public:
  // `inputs`: the bundle, of `bundle_size` tensors, and behind it the weights.
  RecomputeBackward(const Call& call, const variable_list& inputs, size_t bundle_size)
      : call_(call), random_(call.of(), call.device), bundle_size_(bundle_size) {
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
    call_.source->take_gradients(call_.block, {all.begin() + bundle_end(), all.end()});
    all.resize(bundle_size_);
    return all;
  }
  void release_variables() override {
    for (auto& input : inputs_) input.reset_data();
  }

 private:
  std::ptrdiff_t bundle_end() const { return static_cast<std::ptrdiff_t>(bundle_size_); }

  variable_list run_again(const variable_list& leaves) const {
    const c10::AutoGradMode with_graph(true);
    const Exchanged exchanged(call_.of(), {leaves.begin() + bundle_end(), leaves.end()}, Statistics::scratch);
    std::optional<WeightCasts> casts;
    if (call_.source) casts.emplace(call_.of(), call_.precision);
    std::optional<Autocast> autocast;
    if (call_.autocast) autocast.emplace(call_.device);
    const RandomState now(call_.of(), call_.device);
    random_.restore();
    const model::Bundle input(leaves.begin(), leaves.begin() + bundle_end());
    variable_list outputs = call_.run(input);
    now.restore();
    std::erase_if(outputs, [&](const at::Tensor& output) { return is_given_on(output, input); });
    return outputs;
  }

  // The gradients of all inputs, in order; undefined for those that need none.
  variable_list differentiate(const variable_list& leaves, const variable_list& outputs,
                              const variable_list& gradients) const {
    variable_list wanted, reached, directions;
    for (const auto& leaf : leaves) {
      if (leaf.requires_grad()) wanted.push_back(leaf);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!gradients[i].defined()) continue;      // nothing was made of this output
      if (!outputs[i].requires_grad()) continue;  // a choice (a box, an index): nothing flows through it
      reached.push_back(outputs[i]);
      directions.push_back(gradients[i]);
    }
    const variable_list found = torch::autograd::grad(reached, wanted, directions, /*retain_graph=*/std::nullopt,
                                                      /*create_graph=*/false, /*allow_unused=*/true);
    variable_list all(leaves.size());
    for (size_t i = 0, k = 0; i < leaves.size(); ++i) {
      if (!leaves[i].requires_grad()) continue;
      all[i] = i < bundle_size_ ? found[k] : owned(found[k]);
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
  size_t bundle_size_;
  std::vector<SavedVariable> inputs_;
};

void set_history(model::Bundle& outputs, const model::Bundle& input, const std::shared_ptr<RecomputeBackward>& node) {
  for (auto& output : outputs) {
    // What is counted has no gradient; its place among the node's outputs stays.
    if (is_given_on(output, input)) continue;
    if (output.is_floating_point()) {
      torch::autograd::set_history(output, node);
    } else {
      node->add_input_metadata(torch::autograd::Node::undefined_input{});
    }
  }
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

model::Bundle recomputed(const model::Network& network, size_t block, const model::Bundle& input, model::Mode mode) {
  const at::Device device = input[0].device();
  const Call call{network, block, mode, device, at::autocast::is_autocast_enabled(device.type())};
  variable_list inputs = input;
  for (auto& weight : weights_of(call.of())) inputs.push_back(std::move(weight));
  if (!any_requires_grad(inputs)) return call.run(input);
  const std::shared_ptr<RecomputeBackward> node(new RecomputeBackward(call, inputs, input.size()),
                                                torch::autograd::deleteNode);
  model::Bundle outputs;
  {
    const c10::AutoGradMode without_graph(false);
    outputs = call.run(input);
  }
  set_history(outputs, input, node);
  return outputs;
}

model::Bundle gathered(const model::Network& network, size_t block, const model::Bundle& input, model::Mode mode,
                       spec::Precision precision, WeightSource& source) {
  const at::Device device = input[0].device();
  const bool autocast = at::autocast::is_autocast_enabled(device.type());
  const Call call{network, block, mode, device, autocast, &source, precision};
  const std::shared_ptr<RecomputeBackward> node(new RecomputeBackward(call, input, input.size()),
                                                torch::autograd::deleteNode);
  model::Bundle outputs;
  {
    const c10::AutoGradMode without_graph(false);
    const Exchanged exchanged(call.of(), source.weights(block, WeightSource::Pass::forward), Statistics::count);
    const WeightCasts casts(call.of(), precision);
    outputs = call.run(input);
  }
  set_history(outputs, input, node);
  return outputs;
}

}  // namespace lockstep::step
