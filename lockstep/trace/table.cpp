// SPDX-License-Identifier: Apache-2.0
// Operators that need no kernel of their own: libtorch has made their outputs, or they write in place.
#include <ATen/ExpandUtils.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <memory>
#include <span>

#include "lockstep/trace/kernels.h"
#include "lockstep/trace/operator.h"
#include "lockstep/trace/simulated_device.h"

namespace lockstep::trace {
namespace {

// How libtorch calls the operator, and what becomes of its tensors.
enum class Style {
  out,   // libtorch has made the outputs and names them, or the operator works in place: both are in the schema
  like,  // gives a new tensor like its first argument
  sum,   // as out; adds up elements
  sized  // libtorch names the output, but leaves its size to the kernel: that of its inputs together
};

struct Row {
  const char* name;
  Style style = Style::out;
};

constexpr Row kTable[] = {
    {"add.out"},
    {"sub.out"},
    {"mul.out"},
    {"div.out"},
    {"neg.out"},
    {"exp.out"},
    {"log.out"},
    {"sqrt.out"},
    {"rsqrt.out"},
    {"reciprocal.out"},
    {"sigmoid.out"},
    {"tanh.out"},
    {"pow.Tensor_Scalar_out"},
    {"clamp.out"},
    {"clamp_min.out"},
    {"clamp_max.out"},
    {"floor.out"},
    {"sgn.out"},
    {"logical_and.out", Style::sized},
    {"maximum.out"},
    {"minimum.out"},
    {"lerp.Scalar_out"},
    {"addcmul.out"},
    {"addcdiv.out"},
    {"eq.Tensor_out"},
    {"eq.Scalar_out"},
    {"ne.Tensor_out"},
    {"ne.Scalar_out"},
    {"ge.Tensor_out"},
    {"ge.Scalar_out"},
    {"gt.Tensor_out"},
    {"gt.Scalar_out"},
    {"le.Tensor_out"},
    {"le.Scalar_out"},
    {"lt.Tensor_out"},
    {"lt.Scalar_out"},
    {"isneginf.out"},
    {"where.self_out"},
    {"isposinf.out"},
    {"bitwise_and.Tensor_out"},
    {"bitwise_or.Tensor_out"},
    {"bitwise_not.out"},
    {"logical_not.out", Style::sized},
    {"logical_or.out", Style::sized},
    {"gelu.out"},
    {"gelu_backward.grad_input"},
    {"silu.out"},
    {"silu_backward.grad_input"},
    {"sigmoid_backward.grad_input"},
    {"tanh_backward.grad_input"},
    {"threshold_backward.grad_input"},
    {"abs", Style::like},
    {"flip", Style::like},
    {"relu", Style::like},
    {"relu_"},
    {"hardtanh_"},
    {"hardtanh", Style::like},
    {"hardtanh_backward", Style::like},
    {"native_dropout_backward", Style::like},
    {"zero_"},
    {"fill_.Scalar"},
    {"fill_.Tensor"},
    {"bernoulli_.float"},
    {"uniform_"},
    {"normal_"},
    {"sum.IntList_out", Style::sum},
    {"mean.out"},
    {"norm.out"},
    {"linalg_vector_norm.out"},
    {"all.all_out"},
    {"all.out"},
    {"any.all_out"},
    {"any.out"},
    {"argmax.out"},
    {"amax.out"},
    {"_softmax.out"},
    {"_softmax_backward_data.out"},
    {"_log_softmax.out"},
    {"_log_softmax_backward_data.out"},
    {"nll_loss_forward.output"},
    {"nll_loss_backward.grad_input"},
    {"max_pool2d_with_indices.out"},
    {"max_pool2d_with_indices_backward.grad_input"},
    {"upsample_bilinear2d.out"},
    {"upsample_nearest2d.out"},
    {"upsample_nearest2d_backward.grad_input"},
    {"softplus.out"},
    {"softplus_backward.grad_input"},
    {"smooth_l1_loss.out"},
    {"smooth_l1_loss_backward.grad_input"},
    {"topk.values"},
    {"sort.values_stable"},
    {"scatter_add.out"},
    {"avg_pool2d.out"},
    {"avg_pool2d_backward.grad_input"},
    {"cat.out"},
    {"gather.out"},
    {"scatter.src_out"},
    {"masked_fill_.Scalar"},
    {"masked_fill_.Tensor"},
    {"mm.out"},
    {"addmm.out"},
    {"bmm.out"},
    {"baddbmm.out"},
    {"_foreach_mul_.Scalar"},
    {"_foreach_mul_.Tensor"},
    {"_foreach_mul_.ScalarList"},
    {"_foreach_mul_.List"},
    {"_foreach_add_.List"},
    {"_foreach_add_.Scalar"},
    {"_foreach_addcmul_.Scalar"},
    {"_foreach_clamp_min_.Scalar"},
    {"_foreach_clamp_max_.Scalar"},
    {"_foreach_sqrt_"},
    {"_foreach_reciprocal_"},
    {"_foreach_lerp_.Scalar"},
    {"_fused_sgd_"},
    {"_fused_adamw_"},
    {"_amp_foreach_non_finite_check_and_unscale_"},
    {"_amp_update_scale_"},
};

// Lists of tensors are worked off in launches of at most so many blocks and tensors (libtorch's multi_tensor_apply).
int64_t list_launches(const std::vector<at::Tensor>& tensors, int64_t lists) {
  constexpr int64_t kMaxTensors[] = {110, 64, 48, 36, 30};
  constexpr int64_t kMaxBlocks = 320;
  constexpr int64_t kChunk = 65536;
  const auto count = static_cast<int64_t>(tensors.size());
  int64_t chunks = 0;
  for (const at::Tensor& tensor : tensors) chunks += (tensor.numel() + kChunk - 1) / kChunk;
  const int64_t most = kMaxTensors[std::clamp<int64_t>(lists, 1, 5) - 1];
  return std::max((count + most - 1) / most, (chunks + kMaxBlocks - 1) / kMaxBlocks);
}

double summed(const at::Tensor& from, const at::Tensor& to) {
  const auto elements = static_cast<double>(from.numel()) / static_cast<double>(std::max<int64_t>(1, to.numel()));
  return at::isIntegralType(to.scalar_type(), true) ? elements : 1;
}

// Gives an output that came empty the size of the inputs, and their layout where it is the first one's.
void size_output(std::span<const c10::IValue> arguments, const at::Tensor& output) {
  const at::Tensor& first = arguments.front().toTensor();
  std::vector<int64_t> sizes = first.sizes().vec();
  for (const c10::IValue& argument : arguments) {
    if (argument.isTensor() && !argument.toTensor().is_same(output)) {
      sizes = at::infer_size(sizes, argument.toTensor().sizes());
    }
  }
  if (output.sizes() == at::IntArrayRef(sizes)) return;
  const bool alike = first.sizes() == at::IntArrayRef(sizes);
  give_layout(output, alike ? at::empty_like(first, output.options()) : make(sizes, output.scalar_type()));
}

// The kernel of a row.
class TableKernel final : public c10::OperatorKernel {
 public:
  explicit TableKernel(Style style) : style_(style) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
    const c10::FunctionSchema& schema = op.schema();
    const size_t count = schema.arguments().size();
    const std::span<const c10::IValue> arguments(stack->data() + stack->size() - count, count);
    Parts parts = describe_call(schema, arguments);
    std::vector<c10::IValue> results;
    if (style_ == Style::like) {
      results.emplace_back(at::empty_like(arguments.front().toTensor()));
      add_results(parts, schema, results);
    } else {
      for (size_t i = 0; i < count && results.size() < schema.returns().size(); ++i) {
        const auto* alias = schema.arguments()[i].alias_info();
        if (alias && alias->isWrite()) results.push_back(arguments[i]);
      }
    }
    if (style_ == Style::sized) size_output(arguments, results[0].toTensor());
    at::Tensor cast;  // truths and small integers are added up from a copy in the type of the sum
    if (style_ == Style::sum) {
      const at::Tensor& sum = results[0].toTensor();
      set_value(sum, summed(arguments[0].toTensor(), sum));
      if (at::isIntegralType(sum.scalar_type(), true) && sum.scalar_type() != arguments[0].toTensor().scalar_type()) {
        cast = make(arguments[0].toTensor().sizes(), sum.scalar_type());
      }
    }
    if (arguments.front().isTensorList()) parts.front().launches = launches(parts.front().name, arguments);
    recorder().run(std::move(parts.front()));
    stack->resize(stack->size() - count);
    for (auto& result : results) stack->push_back(std::move(result));
  }

 private:
  static int64_t launches(const std::string& name, std::span<const c10::IValue> arguments) {
    if (name == "aten::cat") {  // whatever their sizes (libtorch's parallel_cat)
      constexpr size_t kMaxInputs = 128;
      return static_cast<int64_t>((arguments.front().toTensorList().size() + kMaxInputs - 1) / kMaxInputs);
    }
    const auto lists = std::count_if(arguments.begin(), arguments.end(), [](const c10::IValue& value) {
      return value.isTensorList() && !value.toTensorList().empty();
    });
    return list_launches(arguments.front().toTensorVector(), lists);
  }

  Style style_;
};

}  // namespace

void register_table(torch::Library& library) {
  for (const Row& row : kTable) {
    library.impl(row.name, torch::CppFunction::makeFromBoxedFunctor(std::make_unique<TableKernel>(row.style)));
  }
}

}  // namespace lockstep::trace
