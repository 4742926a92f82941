// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "lockstep/model/named_tensors.h"
#include "lockstep/onnx/model.h"
#include "lockstep/verbs/export/recording.h"

namespace lockstep::verbs::exporting {

onnx::Type type_of(at::ScalarType type);

// A matrix or kernel in 16 bits, contiguous; undefined where it must stay as it is: a vector (scales, offsets and
// statistics cost nothing), no fp32, or values that 16 bits cannot hold to 0.1 % of their norm.
at::Tensor halved(const at::Tensor& weight);

// A graph of ONNX in the making: which of its values a tensor is. A tensor that follows from the network's input is a
// value that nodes make; any other one is a constant, under its own name where it is a weight.
class Graph {
 public:
  enum class Weights { fp32, fp16 };  // fp16: halved() where they can be, and cast before their use
  Graph(const std::vector<model::Named>& weights, Weights kept_as);

  // `value` of the graph is this tensor from now on.
  void bind(const at::Tensor& tensor, const std::string& value);
  bool varies(const at::Tensor& tensor) const { return values_.contains(tensor.unsafeGetTensorImpl()); }
  // The tensor was changed in place: other views of its memory must not be used any more.
  void changed(const at::Tensor& tensor);

  std::string value(const at::Tensor& tensor);                          // its name; a constant is added as needed
  std::string value_as(const at::Tensor& tensor, at::ScalarType type);  // the same, cast as needed
  std::string constant(const at::Tensor& tensor);                       // a new one
  std::string integers(const std::vector<int64_t>& values);             // [n]
  std::string number(double value, at::ScalarType type);                // []

  // A node with one output, whose name it gives.
  std::string add(const std::string& op, std::vector<std::string> inputs, std::vector<onnx::Attribute> attributes = {});
  void add_named(const std::string& op, std::vector<std::string> inputs, const std::string& output);

  // The batch as a list of one integer, and such a shape as a list.
  std::string batch();
  std::string shape(const Sizes& sizes);

  void set_input(const std::string& name) { input_ = name; }
  onnx::Model& model() { return model_; }
  // The memory of the model's tensors.
  const std::vector<at::Tensor>& kept() const { return kept_; }

 private:
  struct Bound {
    at::Tensor tensor;  // so that its address stays its own
    std::string name;
    int64_t since = 0;
  };
  struct Change {
    const c10::TensorImpl* by = nullptr;
    int64_t at = 0;
  };
  std::string fresh(const std::string& stem);
  std::string add_tensor(const std::string& name, const at::Tensor& tensor);
  std::string weight(const std::string& name, const at::Tensor& tensor);
  void check_unchanged(const at::Tensor& tensor, const Bound& bound) const;

  Weights kept_as_;
  onnx::Model model_;
  std::vector<at::Tensor> kept_;
  std::unordered_map<const c10::TensorImpl*, std::string> names_;  // of the weights
  std::unordered_map<const c10::TensorImpl*, Bound> values_;       // what varies
  std::unordered_map<const c10::TensorImpl*, Bound> constants_;    // already in the graph
  std::unordered_map<const void*, Change> changes_;                // by memory
  std::map<std::vector<int64_t>, std::string> integers_;
  std::string input_, batch_;
  int64_t clock_ = 0, counter_ = 0;
};

}  // namespace lockstep::verbs::exporting
