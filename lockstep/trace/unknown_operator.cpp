// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trace/unknown_operator.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/trace/inside.h"
#include "lockstep/trace/operator.h"
#include "lockstep/trace/simulated_device.h"

namespace lockstep::trace {
namespace {

using c10::IValue;

// The tensors of one call as Meta tensors: what shares a storage on the GPU shares one there.
class MetaTensors {
 public:
  IValue meta(const IValue& value) {
    if (value.isTensor()) return meta(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> all;
      for (const at::Tensor& tensor : value.toTensorVector()) all.push_back(meta(tensor));
      return all;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> all;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        all.push_back(tensor ? std::optional(meta(*tensor)) : std::nullopt);
      }
      return all;
    }
    if (value.isDevice() && value.toDevice().is_cuda()) return at::Device(at::kMeta);
    return value;
  }

  IValue simulated(const IValue& value) {
    if (value.isTensor()) return simulated(value.toTensor());
    if (!value.isTensorList()) return value;
    c10::List<at::Tensor> all;
    for (const at::Tensor& tensor : value.toTensorVector()) all.push_back(simulated(tensor));
    return all;
  }

 private:
  at::Tensor meta(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_cuda()) return tensor;
    for (const auto& [ours, theirs] : pairs_) {
      if (ours.is_same(tensor)) return theirs;
    }
    at::Tensor& storage = storages_[tensor.storage().unsafeGetStorageImpl()];
    const auto options = tensor.options().device(at::kMeta);
    if (!storage.defined()) {
      const auto size = static_cast<int64_t>(tensor.element_size());
      storage = at::empty({(static_cast<int64_t>(tensor.storage().nbytes()) + size - 1) / size}, options);
    }
    at::Tensor made = at::empty({0}, options);
    made.unsafeGetTensorImpl()->set_storage_keep_dtype(storage.storage());
    made.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
    pairs_.emplace_back(tensor, made);
    return made;
  }

  // A result that is an argument, one that looks at an argument's storage, or a new one.
  at::Tensor simulated(const at::Tensor& result) {
    if (!result.defined() || !result.is_meta()) return result;
    for (const auto& [ours, theirs] : pairs_) {
      if (!theirs.is_same(result)) continue;
      give_size(ours, result.sizes());  // an output that came empty
      return ours;
    }
    for (const auto& [ours, theirs] : pairs_) {
      if (!theirs.is_alias_of(result)) continue;
      return inside::as_strided(ours, result.sizes(), result.strides(), result.storage_offset());
    }
    return at::empty_strided(result.sizes(), result.strides(), result.options().device(SimulatedDevice::device()));
  }

  std::vector<std::pair<at::Tensor, at::Tensor>> pairs_;  // on the GPU, as Meta
  std::map<const c10::StorageImpl*, at::Tensor> storages_;
};

void record(const c10::FunctionSchema& schema, Parts parts, std::span<const IValue> results) {
  add_results(parts, schema, results);
  for (auto& part : parts) {
    if (part.launches > 0) recorder().estimated(part.name);
    recorder().run(std::move(part));
  }
}

}  // namespace

void run_unknown_operator(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (!op.hasKernelForDispatchKey(c10::DispatchKey::Meta)) {
    throw base::Error(base::Blame::bug,
                      base::text("the simulated GPU has no rule of the operator ", op.operator_name(),
                                 ", and libtorch has no Meta kernel that shows its results"),
                      "add the operator to lockstep/trace (table.cpp, or a kernel of its own in kernels.cpp)");
  }
  const c10::FunctionSchema& schema = op.schema();
  const size_t count = schema.arguments().size();
  const std::vector<IValue> arguments(stack->end() - static_cast<int64_t>(count), stack->end());
  Parts parts = describe_call(schema, arguments);
  MetaTensors tensors;
  torch::jit::Stack called;
  for (const IValue& argument : arguments) called.push_back(tensors.meta(argument));
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &called);
  std::vector<IValue> results;
  results.reserve(called.size());
  for (const IValue& result : called) results.push_back(tensors.simulated(result));
  record(schema, std::move(parts), results);
  stack->resize(stack->size() - count);
  for (auto& result : results) stack->push_back(std::move(result));
}

}  // namespace lockstep::trace
