// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/network.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::model {

Bundle PlainBlock::run(const Bundle& input, Mode mode) {
  Bundle output = input;
  output[0] = forward(input[0], mode);
  return output;
}

Network::Network(std::string name, std::vector<std::unique_ptr<Block>> blocks, at::MemoryFormat images,
                 Interface interface)
    : name_(std::move(name)), blocks_(std::move(blocks)), images_(images), interface_(std::move(interface)) {
  base::ensure(blocks_.size() >= 2 && blocks_.front()->name() == "stem" && blocks_.back()->name() == "head",
               "a network starts with a stem and ends with a head");
}

at::MemoryFormat memory_format(spec::Layout layout) {
  return layout == spec::Layout::channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
}

size_t Network::index_of(const std::string& block) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i]->name() == block) return i;
    names.push_back(blocks_[i]->name());
  }
  throw base::Error(base::Blame::user, base::text(name_, " has no block '", block, "'"),
                    base::did_you_mean(block, names));
}

Bundle Network::inputs_from(const NamedTensors& fields) const {
  Bundle inputs;
  for (const auto& name : interface_.inputs) inputs.push_back(fields.at(name));
  return inputs;
}

NamedTensors Network::outputs_from(const Bundle& last, Mode mode) const {
  const bool others = mode != Mode::evaluate && !interface_.training_outputs.empty();
  const auto& names = others ? interface_.training_outputs : interface_.outputs;
  base::ensure(!last.empty() && last.size() <= names.size(), "every output of a network has a name");
  NamedTensors outputs;
  for (size_t i = 0; i < last.size(); ++i) outputs.set(names[i], last[i]);
  return outputs;
}

Bundle Network::cast(Bundle values, at::ScalarType type, size_t from) const {
  const auto is_exact = [&](size_t i) {
    const auto& exact = interface_.exact;
    return from == 0 && std::find(exact.begin(), exact.end(), interface_.inputs[i]) != exact.end();
  };
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].is_floating_point() && !is_exact(i)) values[i] = values[i].to(type);
  }
  return values;
}

NamedTensors Network::forward(const NamedTensors& fields, Mode mode) const {
  return outputs_from(run(inputs_from(fields), mode, 0, blocks_.size()), mode);
}

Bundle Network::run(Bundle values, Mode mode, size_t from, size_t to) const {
  base::ensure(from <= to && to <= blocks_.size(), "the blocks to run exist");
  for (auto& value : values) {  // as the weights; the loader gives channels_last
    if (from == 0 && value.dim() == 4 && value.is_floating_point()) value = value.contiguous(images_);
  }
  for (size_t i = from; i < to; ++i) {
    if (listener_) listener_(static_cast<int64_t>(i));
    values = blocks_[i]->run(values, mode);
  }
  if (listener_) listener_(-1);
  return values;
}

std::optional<Network> Network::twin() const {
  if (!make_twin_) return std::nullopt;
  Network other = make_twin_();
  for (size_t i = 0; i < blocks_.size(); ++i) {
    Block& block = *other.blocks_[i];
    block.batch_norm = blocks_[i]->batch_norm;
    block.kernels = blocks_[i]->kernels;
    for (size_t k = 0; k < block.parameters.size(); ++k) {
      const at::Tensor& weight = blocks_[i]->parameters[k].tensor;
      block.parameters[k].tensor = weight.detach().requires_grad_(weight.requires_grad());
    }
    for (size_t k = 0; k < block.buffers.size(); ++k) block.buffers[k].tensor.copy_(blocks_[i]->buffers[k].tensor);
  }
  return other;
}

void Network::use_batch_norm(const BatchNormRule& rule) {
  for (const auto& block : blocks_) block->batch_norm = rule;
}

void Network::use_kernels(spec::Kernels kernels) {
  for (const auto& block : blocks_) block->kernels = kernels;
}

std::vector<Named> Network::parameters() const {
  std::vector<Named> all;
  for (const auto& block : blocks_) all.insert(all.end(), block->parameters.begin(), block->parameters.end());
  return all;
}

std::vector<Named> Network::buffers() const {
  std::vector<Named> all;
  for (const auto& block : blocks_) all.insert(all.end(), block->buffers.begin(), block->buffers.end());
  return all;
}

int64_t Network::parameter_count() const {
  int64_t count = 0;
  for (const auto& block : blocks_) {
    for (const Named& parameter : block->parameters) count += parameter.tensor.numel();
  }
  return count;
}

}  // namespace lockstep::model
