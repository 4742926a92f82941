// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trace/operator.h"

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

namespace lockstep::trace {
namespace {

using c10::FunctionSchema;
using c10::IValue;
using forecast::NumberType;
using forecast::Operator;
using forecast::OperatorClass;
using Values = std::span<const IValue>;

// Operators that are not elementwise and do not show it in their schema. Longer names first where one begins another.
struct ClassRow {
  std::string_view begins;
  OperatorClass kind;
};
constexpr ClassRow kByBeginning[] = {
    {"_scaled_dot_product_", OperatorClass::attention},
    {"_flash_attention", OperatorClass::attention},
    {"_efficient_attention", OperatorClass::attention},
    {"_fused_", OperatorClass::optimizer},
    {"_foreach_norm", OperatorClass::reduction},
    {"_foreach_copy", OperatorClass::copy},
    {"_foreach_zero", OperatorClass::copy},
    {"max_pool2d", OperatorClass::pooling},
    {"max_pool3d", OperatorClass::pooling},
    {"avg_pool", OperatorClass::pooling},
    {"adaptive_", OperatorClass::pooling},
    {"_adaptive_", OperatorClass::pooling},
    {"empty", OperatorClass::view},
    {"new_empty", OperatorClass::view},
    {"index", OperatorClass::indexing},
    {"embedding", OperatorClass::indexing},
    {"scatter", OperatorClass::indexing},
    {"linalg_vector_norm", OperatorClass::reduction},
};

const std::map<std::string_view, OperatorClass>& class_by_name() {
  static const auto* const kRows = [] {
    auto* rows = new std::map<std::string_view, OperatorClass>;
    const auto put = [&](OperatorClass kind, std::initializer_list<std::string_view> names) {
      for (const auto name : names) rows->emplace(name, kind);
    };
    put(OperatorClass::matmul, {"mm", "addmm", "bmm", "baddbmm", "addbmm", "addmv", "mv", "dot", "_addmm_activation"});
    put(OperatorClass::convolution, {"convolution", "_convolution", "convolution_overrideable", "cudnn_convolution",
                                     "_conv_depthwise2d", "mkldnn_convolution", "_slow_conv2d_forward"});
    put(OperatorClass::convolution_weight_gradient, {"convolution_backward", "convolution_backward_overrideable"});
    put(OperatorClass::batch_norm, {"native_batch_norm", "cudnn_batch_norm", "_batch_norm_with_update",
                                    "_native_batch_norm_legit", "_batch_norm_no_update"});
    put(OperatorClass::batch_norm_gradient,
        {"native_batch_norm_backward", "cudnn_batch_norm_backward", "batch_norm_backward"});
    put(OperatorClass::layer_norm, {"native_layer_norm", "native_group_norm"});
    put(OperatorClass::layer_norm_gradient, {"native_layer_norm_backward", "native_group_norm_backward"});
    put(OperatorClass::softmax,
        {"_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data", "logsumexp"});
    put(OperatorClass::reduction, {"sum",
                                   "mean",
                                   "norm",
                                   "amax",
                                   "amin",
                                   "argmax",
                                   "argmin",
                                   "max",
                                   "min",
                                   "all",
                                   "any",
                                   "var_mean",
                                   "var",
                                   "std",
                                   "prod",
                                   "cumsum",
                                   "topk",
                                   "sort",
                                   "nll_loss_forward",
                                   "nll_loss_backward",
                                   "_amp_foreach_non_finite_check_and_unscale_"});
    put(OperatorClass::copy,
        {"copy_",     "_to_copy",        "clone",           "cat",          "stack",    "fill_",
         "zero_",     "zeros",           "zeros_like",      "ones",         "full",     "new_zeros",
         "ones_like", "constant_pad_nd", "full_like",       "arange",       "new_full", "repeat",
         "new_ones",  "slice_backward",  "select_backward", "scalar_tensor"});
    put(OperatorClass::indexing, {"gather", "roll", "flip", "masked_select", "nonzero", "take", "masked_fill_"});
    put(OperatorClass::random, {"bernoulli_", "bernoulli", "native_dropout", "uniform_", "normal_", "rand", "randn",
                                "randperm", "random_", "exponential_"});
    put(OperatorClass::view, {"_unsafe_view", "as_strided_", "t_", "transpose_", "squeeze_", "unsqueeze_", "detach_",
                              "lift_fresh", "resize_", "set_", "record_stream", "is_same_size", "resize_as_"});
    put(OperatorClass::host, {"_local_scalar_dense", "is_pinned", "_pin_memory", "equal"});
    return rows;
  }();
  return *kRows;
}

std::string_view base_name(const FunctionSchema& schema) {
  std::string_view name = schema.name();
  const size_t colons = name.rfind("::");
  return colons == std::string_view::npos ? name : name.substr(colons + 2);
}

bool is_view(const FunctionSchema& schema) {
  return std::any_of(schema.returns().begin(), schema.returns().end(), [](const c10::Argument& result) {
    return result.alias_info() != nullptr && !result.alias_info()->isWrite();
  });
}

// Calls `use` with every defined tensor of the value, also those in a list.
template <class Use>
void each_tensor(const IValue& value, const Use& use) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) use(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      if (tensor.defined()) use(tensor);
    }
  } else if (value.isOptionalTensorList()) {
    for (const auto& item : value.toListRef()) each_tensor(item, use);
  }
}

double value_bytes(const IValue& value) {
  double bytes = 0;
  each_tensor(value, [&](const at::Tensor& tensor) { bytes += tensor_bytes(tensor); });
  return bytes;
}

double product(std::initializer_list<int64_t> factors) {
  double all = 1;
  for (const int64_t factor : factors) all *= static_cast<double>(factor);
  return all;
}

const IValue* argument(const FunctionSchema& schema, Values values, const std::string& name) {
  const auto index = schema.argumentIndexWithName(name);
  return index && static_cast<size_t>(*index) < values.size() ? &values[static_cast<size_t>(*index)] : nullptr;
}

int64_t first_int(const IValue* value, int64_t otherwise) {
  if (value == nullptr || value->isNone()) return otherwise;
  if (value->isInt()) return value->toInt();
  if (value->isIntList()) return value->toIntVector().empty() ? otherwise : value->toIntVector()[0];
  if (value->isList() && !value->toListRef().empty()) return first_int(&value->toListRef()[0], otherwise);  // SymInt[]
  return value->isSymInt() ? value->toSymInt().guard_int(__FILE__, __LINE__) : otherwise;
}

// Shape and FLOPs of a convolution, which its two gradients share: each is as much work as the way forward.
void describe_convolution(Operator& part, const FunctionSchema& schema, Values values, const at::Tensor& input,
                          const at::Tensor& weight) {
  const auto in = input.sizes();
  const auto w = weight.sizes();  // [out, in / groups, kernel_h, kernel_w]
  const int64_t stride = first_int(argument(schema, values, "stride"), 1);
  const int64_t padding = first_int(argument(schema, values, "padding"), 0);
  const int64_t dilation = first_int(argument(schema, values, "dilation"), 1);
  const int64_t groups = first_int(argument(schema, values, "groups"), 1);
  if (in.size() != 4 || w.size() != 4) return;
  const auto side = [&](int64_t size, int64_t k) { return (size + 2 * padding - dilation * (k - 1) - 1) / stride + 1; };
  part.shape = {in[0], in[1], in[2], in[3], w[0], w[2], w[3], stride, groups};
  part.flops = 2 * product({in[0], w[0], side(in[2], w[2]), side(in[3], w[3]), w[1], w[2], w[3]});
  part.type = product_type(input, OperatorClass::convolution);
}

void describe_matmul(Operator& part, const FunctionSchema& schema, Values values) {
  std::vector<at::Tensor> matrices;
  for (size_t i = 0; i < values.size(); ++i) {
    if (schema.arguments()[i].is_out()) continue;
    each_tensor(values[i], [&](const at::Tensor& tensor) { matrices.push_back(tensor); });
  }
  if (matrices.size() < 2) return;
  const at::Tensor& a = matrices[matrices.size() - 2];  // addmm and its like: what is added comes first
  const at::Tensor& b = matrices[matrices.size() - 1];
  const int64_t batch = a.dim() == 3 ? a.size(0) : 1;
  const int64_t m = a.dim() >= 2 ? a.size(-2) : 1;
  const int64_t n = b.dim() >= 2 ? b.size(-1) : 1;
  part.shape = {batch, m, n, a.size(-1)};
  part.flops = 2 * product({batch, m, n, a.size(-1)});
  part.type = product_type(a, OperatorClass::matmul);
}

// Forward two products, backward five (one is done again); a causal mask is not known to save anything.
void describe_attention(Operator& part, const FunctionSchema& schema, Values values) {
  const IValue* q = argument(schema, values, "query");
  const IValue* k = argument(schema, values, "key");
  if (q == nullptr || k == nullptr || !q->isTensor() || q->toTensor().dim() != 4) return;
  const auto sizes = q->toTensor().sizes();  // [batch, heads, tokens, head_dim]
  part.shape = {sizes[0], sizes[1], sizes[2], k->toTensor().size(2), sizes[3]};
  const double one = 2 * product({sizes[0], sizes[1], sizes[2], k->toTensor().size(2), sizes[3]});
  part.flops = one * (part.kind == OperatorClass::attention ? 2 : 5);
  part.type = product_type(q->toTensor(), OperatorClass::attention);
}

Parts describe_convolution_backward(Operator whole, const FunctionSchema& schema, Values values) {
  const IValue* gradient = argument(schema, values, "grad_output");
  const IValue* input = argument(schema, values, "input");
  const IValue* weight = argument(schema, values, "weight");
  const IValue* mask = argument(schema, values, "output_mask");
  if (!gradient || !input || !weight) return {whole};
  const std::vector<bool> wanted =
      mask && mask->isBoolList() ? mask->toBoolList().vec() : std::vector<bool>{true, true, true};
  describe_convolution(whole, schema, values, input->toTensor(), weight->toTensor());
  Parts parts;
  if (wanted[0]) {
    whole.kind = OperatorClass::convolution_input_gradient;
    whole.bytes = value_bytes(*gradient) + value_bytes(*weight);
    parts.push_back(whole);
  }
  if (wanted[1] || parts.empty()) {
    whole.kind = OperatorClass::convolution_weight_gradient;
    whole.bytes = value_bytes(*gradient) + value_bytes(*input);
    parts.push_back(whole);
  }
  return parts;
}

// The largest tensor says the sizes and the number type of everything that is no product.
void describe_by_largest(Operator& part, const IValue& value) {
  each_tensor(value, [&](const at::Tensor& tensor) {
    int64_t largest = part.shape.empty() ? -1 : 1;
    for (const int64_t size : part.shape) largest *= size;
    if (tensor.numel() <= largest) return;
    part.shape = tensor.sizes().vec();
    part.type = plain_type(tensor.scalar_type());
  });
}

bool is_product(OperatorClass kind) {
  return kind == OperatorClass::matmul || kind == OperatorClass::convolution || kind == OperatorClass::attention ||
         kind == OperatorClass::attention_gradient || kind == OperatorClass::convolution_input_gradient ||
         kind == OperatorClass::convolution_weight_gradient;
}

// What the operator overwrites without reading it first.
bool only_writes(std::string_view name) {
  return name == "copy_" || name == "zero_" || name == "fill_" || name == "_foreach_copy_" ||
         name == "_foreach_zero_" || name == "uniform_" || name == "normal_" || name == "random_" ||
         name == "bernoulli_";
}

}  // namespace

double tensor_bytes(const at::Tensor& tensor) {
  // An expanded tensor is read from fewer bytes than it has elements.
  double elements = 1;
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.stride(d) != 0 || tensor.size(d) == 0) elements *= static_cast<double>(tensor.size(d));
  }
  return elements * static_cast<double>(tensor.element_size());
}

NumberType plain_type(at::ScalarType type) {
  switch (type) {
    case at::kBFloat16:
      return NumberType::bf16;
    case at::kHalf:
      return NumberType::fp16;
    case at::kFloat:
      return NumberType::fp32;
    case at::kDouble:
      return NumberType::fp64;
    default:
      return NumberType::integer;
  }
}

// Of a product: fp32 tensors may be multiplied on the tensor cores.
NumberType product_type(const at::Tensor& tensor, OperatorClass kind) {
  const NumberType type = plain_type(tensor.scalar_type());
  if (type != NumberType::fp32 || !tensor.is_cuda() || kind == OperatorClass::attention) return type;
  const auto op = kind == OperatorClass::matmul ? at::Float32Op::MATMUL : at::Float32Op::CONV;
  const auto allowed = at::globalContext().float32Precision(at::Float32Backend::CUDA, op);
  return allowed == at::Float32Precision::TF32 ? NumberType::tf32 : type;
}

OperatorClass class_of(const FunctionSchema& schema) {
  const std::string_view name = base_name(schema);
  const auto found = class_by_name().find(name);
  if (found != class_by_name().end()) return found->second;
  if (is_view(schema)) return OperatorClass::view;
  const bool backward = name.find("backward") != std::string_view::npos;
  for (const auto& row : kByBeginning) {
    if (!name.starts_with(row.begins)) continue;
    if (backward && row.kind == OperatorClass::attention) return OperatorClass::attention_gradient;
    if (backward && row.kind == OperatorClass::pooling) return OperatorClass::pooling_gradient;
    return row.kind;
  }
  return OperatorClass::elementwise;
}

Parts describe_call(const FunctionSchema& schema, Values arguments) {
  Operator part;
  part.name = schema.name();
  part.kind = class_of(schema);
  const std::string_view name = base_name(schema);
  if (part.kind == OperatorClass::view || part.kind == OperatorClass::host) {
    part.launches = 0;
    for (const auto& value : arguments) describe_by_largest(part, value);
    return {part};
  }
  if (part.kind == OperatorClass::convolution_weight_gradient) {
    return describe_convolution_backward(part, schema, arguments);
  }
  for (size_t i = 0; i < arguments.size() && i < schema.arguments().size(); ++i) {
    const auto* alias = schema.arguments()[i].alias_info();
    const bool written = alias != nullptr && alias->isWrite();
    const bool read = !written || !(only_writes(name) || schema.arguments()[i].is_out());  // out=: not read
    part.bytes += value_bytes(arguments[i]) * ((written ? 1 : 0) + (read ? 1 : 0));
    if (!is_product(part.kind)) describe_by_largest(part, arguments[i]);
  }
  if (part.kind == OperatorClass::convolution) {
    const IValue* weight = argument(schema, arguments, "weight");
    const IValue* input = weight ? &arguments[0] : nullptr;  // some call it "self"
    if (input) describe_convolution(part, schema, arguments, input->toTensor(), weight->toTensor());
  }
  if (part.kind == OperatorClass::matmul) describe_matmul(part, schema, arguments);
  if (part.kind == OperatorClass::attention || part.kind == OperatorClass::attention_gradient) {
    describe_attention(part, schema, arguments);
  }
  return {part};
}

void add_results(Parts& parts, const FunctionSchema& schema, Values results) {
  for (size_t i = 0; i < results.size() && i < schema.returns().size(); ++i) {
    if (schema.returns()[i].alias_info() != nullptr) continue;  // a view, or an argument that was counted already
    const bool backward = parts.size() == 2 || parts[0].kind == OperatorClass::convolution_input_gradient;
    Operator& part = backward && i > 0 ? parts.back() : parts.front();
    if (part.launches == 0) continue;
    part.bytes += value_bytes(results[i]);
    if (!is_product(part.kind)) describe_by_largest(part, results[i]);
  }
}

bool is_composite(const c10::OperatorName& name) {
  static std::mutex* const mutex = new std::mutex;
  static auto* const known = new std::unordered_map<c10::OperatorName, bool>;
  const std::lock_guard lock(*mutex);
  const auto found = known->find(name);
  if (found != known->end()) return found->second;
  const auto handle = c10::Dispatcher::singleton().findSchema(name);
  const bool composite = handle && handle->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
                         !handle->hasKernelForDispatchKey(c10::DispatchKey::CPU) &&
                         !handle->hasKernelForDispatchKey(c10::DispatchKey::CUDA);
  known->emplace(name, composite);
  return composite;
}

}  // namespace lockstep::trace
