// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::model {

struct Named {
  std::string name;  // of a weight, as torchvision or timm spells it: "layer1.0.conv1.weight"
  at::Tensor tensor;
};

// A few tensors by name, in order: the fields of a batch, the outputs of a network.
class NamedTensors {
 public:
  NamedTensors() = default;
  NamedTensors(std::initializer_list<Named> entries) : entries_(entries) {}

  const at::Tensor& at(std::string_view name) const;  // REQUIRES: there is one
  const at::Tensor* find(std::string_view name) const;
  void set(const std::string& name, at::Tensor tensor);  // replaces the one of that name, or stands last
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  auto begin() { return entries_.begin(); }
  auto end() { return entries_.end(); }

 private:
  std::vector<Named> entries_;
};

}  // namespace lockstep::model
