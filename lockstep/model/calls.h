// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <string>
#include <vector>

namespace lockstep::model {

// One call of a libtorch operator, as our own code made it: what it calls in turn is not there.
struct Call {
  std::string name;      // "aten::conv2d"
  std::string overload;  // "Tensor", "dim"; empty: the plain one
  std::vector<c10::IValue> inputs;
  std::vector<c10::IValue> outputs;

  bool is_in_place() const { return name.ends_with('_'); }
};

// Those of `work`, on this thread, in order. The calls hold their tensors, so that each has an address of its own.
std::vector<Call> record_calls(const std::function<void()>& work);

// Every tensor among the values, also those in lists.
std::vector<at::Tensor> tensors_in(const std::vector<c10::IValue>& values);

}  // namespace lockstep::model
