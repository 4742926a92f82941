// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/export/graph.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::verbs::exporting {
namespace {

using base::text;

constexpr double kMostRounding = 1e-3;

}  // namespace

onnx::Type type_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return onnx::Type::float32;
    case at::kHalf:
      return onnx::Type::float16;
    case at::kDouble:
      return onnx::Type::float64;
    case at::kLong:
      return onnx::Type::int64;
    case at::kBool:
      return onnx::Type::boolean;
    case at::kByte:
      return onnx::Type::uint8;
    default:
      throw base::Error(base::Blame::bug, text("no ONNX type for ", c10::toString(type)));
  }
}

// Rounding to nearest costs 0.02 to 0.03 % of the norm; what is much smaller than 1e-4 or larger than 65504 costs more.
at::Tensor halved(const at::Tensor& weight) {
  if (weight.dim() < 2 || weight.scalar_type() != at::kFloat) return {};
  const at::Tensor plain = weight.detach().to(at::kCPU);
  at::Tensor half = plain.to(at::kHalf).contiguous();
  const auto lost = half.to(at::kFloat).sub(plain).norm().item<double>();
  return lost <= kMostRounding * plain.norm().item<double>() ? half : at::Tensor();
}

Graph::Graph(const std::vector<model::Named>& weights, Weights kept_as) : kept_as_(kept_as) {
  for (const auto& entry : weights) {
    names_[entry.tensor.unsafeGetTensorImpl()] = entry.name;
    kept_.push_back(entry.tensor);
  }
}

std::string Graph::fresh(const std::string& stem) {
  return text(stem, "_", ++counter_);
}

void Graph::bind(const at::Tensor& tensor, const std::string& value) {
  values_[tensor.unsafeGetTensorImpl()] = {tensor, value, ++clock_};
}

void Graph::changed(const at::Tensor& tensor) {
  changes_[tensor.storage().data()] = {tensor.unsafeGetTensorImpl(), ++clock_};
}

void Graph::check_unchanged(const at::Tensor& tensor, const Bound& bound) const {
  const auto found = changes_.find(tensor.storage().data());
  const bool stale =
      found != changes_.end() && found->second.at > bound.since && found->second.by != tensor.unsafeGetTensorImpl();
  base::ensure(!stale, "no view of a tensor is used after the tensor was changed in place");
}

std::string Graph::value(const at::Tensor& tensor) {
  if (const auto found = values_.find(tensor.unsafeGetTensorImpl()); found != values_.end()) {
    check_unchanged(tensor, found->second);
    return found->second.name;
  }
  return constant(tensor);
}

std::string Graph::value_as(const at::Tensor& tensor, at::ScalarType type) {
  if (tensor.scalar_type() == type) return value(tensor);
  if (!varies(tensor)) return constant(tensor.to(type));
  return add("Cast", {value(tensor)}, {{"to", static_cast<int64_t>(type_of(type))}});
}

std::string Graph::add_tensor(const std::string& name, const at::Tensor& tensor) {
  const at::Tensor kept = tensor.detach().to(at::kCPU).contiguous();
  kept_.push_back(kept);
  model_.tensors.push_back({name,
                            type_of(kept.scalar_type()),
                            kept.sizes().vec(),
                            {static_cast<const std::byte*>(kept.const_data_ptr()), kept.nbytes()}});
  return name;
}

std::string Graph::weight(const std::string& name, const at::Tensor& tensor) {
  const at::Tensor half = kept_as_ == Weights::fp16 ? halved(tensor) : at::Tensor();
  if (!half.defined()) return add_tensor(name, tensor);
  return add("Cast", {add_tensor(name, half)}, {{"to", static_cast<int64_t>(onnx::Type::float32)}});
}

std::string Graph::constant(const at::Tensor& tensor) {
  const c10::TensorImpl* key = tensor.unsafeGetTensorImpl();
  if (const auto found = constants_.find(key); found != constants_.end()) return found->second.name;
  const auto named = names_.find(key);
  std::string name = weight(named != names_.end() ? named->second : fresh("constant"), tensor);
  constants_[key] = {tensor, name, 0};
  return name;
}

std::string Graph::integers(const std::vector<int64_t>& values) {
  std::string& name = integers_[values];
  if (name.empty()) name = add_tensor(fresh("integers"), at::tensor(values, at::kLong));
  return name;
}

std::string Graph::number(double value, at::ScalarType type) {
  return add_tensor(fresh("number"), at::full({}, value, at::TensorOptions(type)));
}

std::string Graph::add(const std::string& op, std::vector<std::string> inputs,
                       std::vector<onnx::Attribute> attributes) {
  std::string output = fresh(op);
  model_.nodes.push_back({op, std::move(inputs), {output}, std::move(attributes)});
  return output;
}

void Graph::add_named(const std::string& op, std::vector<std::string> inputs, const std::string& output) {
  model_.nodes.push_back({op, std::move(inputs), {output}, {}});
}

std::string Graph::batch() {
  if (batch_.empty()) batch_ = add("Shape", {input_}, {{"start", int64_t{0}}, {"end", int64_t{1}}});
  return batch_;
}

std::string Graph::shape(const Sizes& sizes) {
  std::vector<std::string> parts;
  std::vector<int64_t> fixed;
  const auto end_fixed = [&] {
    if (!fixed.empty()) parts.push_back(integers(fixed));
    fixed.clear();
  };
  for (const Size& size : sizes) {
    if (!size.varies()) {
      fixed.push_back(size.fixed);
      continue;
    }
    end_fixed();
    parts.push_back(size.per_batch == 1 ? batch() : add("Mul", {batch(), integers({size.per_batch})}));
  }
  end_fixed();
  return parts.size() == 1 ? parts.front() : add("Concat", parts, {{"axis", int64_t{0}}});
}

}  // namespace lockstep::verbs::exporting
