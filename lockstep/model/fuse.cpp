// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/fuse.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>

#include "lockstep/base/error.h"

namespace lockstep::model {
namespace {

using c10::IValue;

constexpr size_t kAtTheEnd = std::numeric_limits<size_t>::max();

const void* id_of(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl();
}

// Padding and the like: one number stands for both dims.
std::vector<int64_t> both(const IValue& value) {
  auto numbers = value.toIntVector();
  if (numbers.size() == 1) numbers.push_back(numbers.front());
  return numbers;
}

IValue scalars(const std::vector<double>& values) {
  c10::List<std::optional<at::Scalar>> list;
  for (const double value : values) list.push_back(at::Scalar(value));
  return list;
}

at::Tensor call_one(const char* name, std::vector<IValue> stack) {
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(&stack);
  return stack.front().toTensor();
}

// What becomes of a convolution's output before anybody else reads it.
struct Tail {
  const Call* norm = nullptr;
  at::Tensor added = {};
  std::string unary = "none";
  std::vector<double> bounds = {};  // of a clamp
  at::Tensor value = {};            // what the last of them gives
  std::vector<size_t> calls = {};   // in order
};

class Fusion {
 public:
  Fusion(const std::vector<Call>& calls, const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& outputs,
         PackedConvolutions& packed)
      : calls_(calls), inputs_(inputs), packed_(packed) {
    for (const auto& input : inputs) owner_[id_of(input)] = kAtTheEnd;
    for (size_t i = 0; i < calls.size(); ++i) {
      for (const auto& tensor : tensors_in(calls[i].inputs)) uses_[id_of(tensor)].push_back(i);
      for (const auto& tensor : tensors_in(calls[i].outputs)) owner_.try_emplace(id_of(tensor), i);
    }
    for (const auto& output : outputs) uses_[id_of(output)].push_back(kAtTheEnd);
  }

  std::vector<Call> run() {
    std::map<size_t, Call> replaced;
    std::set<size_t> gone;
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (!is_plain_convolution(calls_[i])) continue;
      const Tail tail = tail_of(i);
      const size_t last = tail.calls.empty() ? i : tail.calls.back();
      if (is_written(calls_[i].inputs[0].toTensor(), i, last, tail)) continue;
      gone.insert(i);
      gone.insert(tail.calls.begin(), tail.calls.end());
      replaced[last] = fused(calls_[i], tail);
    }
    std::vector<Call> all;
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (const auto found = replaced.find(i); found != replaced.end()) all.push_back(found->second);
      if (!gone.contains(i)) all.push_back(calls_[i]);
    }
    return all;
  }

 private:
  bool varies(const IValue& value) const {
    const auto tensors = tensors_in({value});
    return std::any_of(tensors.begin(), tensors.end(), [&](const auto& t) { return owner_.contains(id_of(t)); });
  }

  bool is_plain_convolution(const Call& call) const {
    if (call.name != "aten::conv2d" || !call.overload.empty()) return false;
    const at::Tensor image = call.inputs[0].toTensor();
    const at::ScalarType type = image.scalar_type();
    return image.dim() == 4 && (type == at::kFloat || type == at::kBFloat16) && image.is_cpu() &&
           varies(call.inputs[0]) && !varies(call.inputs[1]) && !varies(call.inputs[2]) &&
           call.inputs[1].toTensor().scalar_type() == type;
  }

  // The call behind `after` that reads the value first, and none but it where it gives a tensor of its own.
  std::optional<size_t> next_use(const at::Tensor& value, size_t after) const {
    const auto found = uses_.find(id_of(value));
    if (found == uses_.end()) return std::nullopt;
    const auto& uses = found->second;
    const auto next = std::find_if(uses.begin(), uses.end(), [&](size_t use) { return use > after; });
    if (next == uses.end() || *next == kAtTheEnd) return std::nullopt;
    const Call& call = calls_[*next];
    if (!call.inputs[0].isTensor() || !call.inputs[0].toTensor().is_same(value)) return std::nullopt;
    const bool is_last = std::all_of(next, uses.end(), [&](size_t use) { return use == *next; });
    return call.is_in_place() || is_last ? std::optional(*next) : std::nullopt;
  }

  Tail tail_of(size_t convolution) const {
    Tail tail;
    tail.value = calls_[convolution].outputs[0].toTensor();
    size_t at = convolution;
    const auto take = [&](size_t use) {
      tail.value = calls_[use].outputs[0].toTensor();
      tail.calls.push_back(at = use);
    };
    if (const auto use = next_use(tail.value, at); use && is_norm(calls_[*use])) {
      tail.norm = &calls_[*use];
      take(*use);
    }
    if (const auto use = next_use(tail.value, at); use && is_sum(calls_[*use], tail.value)) {
      tail.added = calls_[*use].inputs[1].toTensor();
      take(*use);
    }
    if (const auto use = next_use(tail.value, at); use && set_unary(calls_[*use], tail)) take(*use);
    return tail;
  }

  bool is_norm(const Call& call) const {
    if (call.name != "aten::batch_norm" || call.inputs[5].toBool()) return false;
    return std::none_of(call.inputs.begin() + 1, call.inputs.begin() + 5,
                        [&](const IValue& value) { return !value.isTensor() || varies(value); });
  }

  bool is_sum(const Call& call, const at::Tensor& value) const {
    if ((call.name != "aten::add_" && call.name != "aten::add") || !call.inputs[1].isTensor()) return false;
    const at::Tensor other = call.inputs[1].toTensor();
    return call.inputs[2].toScalar().toDouble() == 1 && other.sizes() == value.sizes() && varies(call.inputs[1]) &&
           other.scalar_type() == value.scalar_type() && !other.is_same(value);
  }

  static bool set_unary(const Call& call, Tail& tail) {
    if (call.name == "aten::relu" || call.name == "aten::relu_") {
      tail.unary = "relu";
    } else if (call.name == "aten::hardtanh" || call.name == "aten::hardtanh_") {
      tail.unary = "hardtanh";
      tail.bounds = {call.inputs[1].toScalar().toDouble(), call.inputs[2].toScalar().toDouble()};
    } else {
      return false;
    }
    return true;
  }

  // Whether somebody else changes in place what the convolution reads, before the fused call comes to read it.
  bool is_written(const at::Tensor& image, size_t from, size_t to, const Tail& tail) const {
    for (size_t i = from + 1; i < to; ++i) {
      const bool is_own = std::find(tail.calls.begin(), tail.calls.end(), i) != tail.calls.end();
      if (is_own || !calls_[i].is_in_place()) continue;
      const at::Tensor written = calls_[i].inputs[0].toTensor();
      if (written.is_alias_of(image) || (tail.added.defined() && written.is_alias_of(tail.added))) return true;
    }
    return false;
  }

  // Whether nobody reads it behind this call, and no other tensor lies in its memory: the sum may go there.
  bool may_be_overwritten(const at::Tensor& tensor, const at::Tensor& image, size_t behind) const {
    const auto owner = owner_.find(id_of(tensor));
    if (owner->second == kAtTheEnd || tensor.is_alias_of(image)) return false;
    const auto& uses = uses_.at(id_of(tensor));
    if (std::any_of(uses.begin(), uses.end(), [&](size_t use) { return use > behind; })) return false;
    const auto shares = [&](const at::Tensor& other) { return !other.is_same(tensor) && other.is_alias_of(tensor); };
    if (std::any_of(inputs_.begin(), inputs_.end(), shares)) return false;  // a view of what the caller has
    return std::none_of(calls_.begin(), calls_.end(), [&](const Call& call) {
      const auto outputs = tensors_in(call.outputs);
      return std::any_of(outputs.begin(), outputs.end(), shares);
    });
  }

  const PackedConvolution& packed_for(const Call& convolution, const Tail& tail) {
    const at::Tensor plain = convolution.inputs[1].toTensor();
    const at::Tensor scale = tail.norm ? tail.norm->inputs[1].toTensor() : at::Tensor();
    const auto key = std::pair(id_of(plain), tail.norm ? id_of(scale) : nullptr);
    const auto known = packed_.find(key);
    if (known != packed_.end()) return known->second;
    at::Tensor weight = plain.detach();
    at::Tensor bias = convolution.inputs[2].isTensor() ? convolution.inputs[2].toTensor() : at::Tensor();
    if (bias.defined()) bias = bias.detach();
    if (tail.norm) {  // in double: one rounding
      const auto of_norm = [&](size_t i) { return tail.norm->inputs[i].toTensor().detach().to(at::kDouble); };
      const at::Tensor factor = of_norm(1) / (of_norm(4) + tail.norm->inputs[7].toDouble()).sqrt();
      const at::Tensor offset = bias.defined() ? bias.to(at::kDouble) - of_norm(3) : -of_norm(3);
      weight = (weight.to(at::kDouble) * factor.view({-1, 1, 1, 1})).to(plain.scalar_type());
      bias = (of_norm(2) + offset * factor).to(plain.scalar_type());
    }
    const auto& inputs = convolution.inputs;
    weight = call_one("mkldnn::_reorder_convolution_weight", {weight, both(inputs[4]), both(inputs[3]), both(inputs[5]),
                                                              inputs[6], inputs[0].toTensor().sizes().vec()});
    return packed_[key] = {weight, bias, plain};
  }

  Call fused(const Call& convolution, const Tail& tail) {
    const PackedConvolution& constants = packed_for(convolution, tail);
    const auto& inputs = convolution.inputs;
    const IValue bias = constants.bias.defined() ? IValue(constants.bias) : IValue();
    Call call{"mkldnn::_convolution_pointwise", "", {}, {tail.value}};
    if (!tail.added.defined()) {
      call.inputs = {inputs[0],       constants.weight, bias,       both(inputs[4]),      both(inputs[3]),
                     both(inputs[5]), inputs[6],        tail.unary, scalars(tail.bounds), ""};
      return call;
    }
    call.overload = "binary";
    const bool in_place = may_be_overwritten(tail.added, inputs[0].toTensor(), tail.calls.back());
    if (in_place) call.name += "_";
    call.inputs = {in_place ? IValue(tail.added) : inputs[0], in_place ? inputs[0] : IValue(tail.added)};
    const IValue unary = tail.unary == "none" ? IValue() : IValue(tail.unary);
    call.inputs.insert(call.inputs.end(), {constants.weight, bias, both(inputs[4]), both(inputs[3]), both(inputs[5]),
                                           inputs[6], "add", IValue(), unary, scalars(tail.bounds), IValue()});
    return call;
  }

  const std::vector<Call>& calls_;
  const std::vector<at::Tensor>& inputs_;
  PackedConvolutions& packed_;
  std::map<const void*, std::vector<size_t>> uses_;  // calls that read a tensor, in order
  std::map<const void*, size_t> owner_;              // the call that gave it; kAtTheEnd: an input
};

}  // namespace

std::optional<std::vector<Call>> varying_calls(const std::vector<Call>& calls, const std::vector<at::Tensor>& inputs) {
  std::set<const void*> varying;
  for (const auto& input : inputs) varying.insert(id_of(input));
  const auto varies = [&](const at::Tensor& tensor) { return varying.contains(id_of(tensor)); };
  const auto hides = [&](const IValue& value) {  // in a list that tensors_in() does not open
    if (!value.isOptionalTensorList()) return false;
    const auto list = value.toOptionalTensorVector();
    return std::any_of(list.begin(), list.end(), [&](const auto& tensor) { return tensor && varies(*tensor); });
  };
  std::vector<Call> kept;
  for (const auto& call : calls) {
    if (std::any_of(call.inputs.begin(), call.inputs.end(), hides)) return std::nullopt;
    const auto given = tensors_in(call.inputs);
    if (std::none_of(given.begin(), given.end(), varies)) continue;
    const auto results = tensors_in(call.outputs);
    if (results.empty() || (call.is_in_place() && !varies(given.front()))) return std::nullopt;
    for (const auto& tensor : results) varying.insert(id_of(tensor));
    kept.push_back(call);
  }
  return kept;
}

std::vector<Call> fuse_calls(const std::vector<Call>& calls, const std::vector<at::Tensor>& inputs,
                             const std::vector<at::Tensor>& outputs, PackedConvolutions& packed) {
  return Fusion(calls, inputs, outputs, packed).run();
}

}  // namespace lockstep::model
