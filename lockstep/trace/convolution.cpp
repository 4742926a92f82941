// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trace/convolution.h"

#include "lockstep/trace/inside.h"
#include "lockstep/trace/kernels.h"
#include "lockstep/trace/operator.h"
#include "lockstep/trace/simulated_device.h"

namespace lockstep::trace {
namespace {

using forecast::OperatorClass;

// Multiply and add for each output element, kernel element and channel of the group, whatever the direction.
Work convolution_work(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& output,
                      at::IntArrayRef stride, int64_t groups) {
  Work work;
  work.flops =
      2.0 * static_cast<double>(output.numel()) * static_cast<double>(weight.size(1) * weight.size(2) * weight.size(3));
  work.shape = {input.size(0),  input.size(1),  input.size(2), input.size(3), weight.size(0),
                weight.size(2), weight.size(3), stride[0],     groups};
  work.type = product_type(input, OperatorClass::convolution);
  return work;
}

std::vector<int64_t> output_sizes(const at::Tensor& input, const at::Tensor& weight, at::IntArrayRef padding,
                                  at::IntArrayRef stride, at::IntArrayRef dilation) {
  std::vector<int64_t> sizes{input.size(0), weight.size(0)};
  for (size_t i = 0; i < 2; ++i) {
    const auto dim = static_cast<int64_t>(i) + 2;
    const int64_t reach = dilation[i] * (weight.size(dim) - 1) + 1;
    sizes.push_back((input.size(dim) + 2 * padding[i] - reach) / stride[i] + 1);
  }
  return sizes;
}

at::Tensor depthwise(const at::Tensor& input, const at::Tensor& weight, at::IntArrayRef /*kernel*/,
                     const std::optional<at::Tensor>& bias, at::IntArrayRef stride, at::IntArrayRef padding,
                     at::IntArrayRef dilation) {
  const at::Tensor lying = input.contiguous();
  at::Tensor output = make(output_sizes(input, weight, padding, stride, dilation), input.scalar_type());
  ran("aten::convolution", OperatorClass::convolution, {lying, weight, bias.value_or(at::Tensor())}, {output},
      convolution_work(input, weight, output, stride, input.size(1)));
  return output;
}

at::Tensor cudnn_convolution(const at::Tensor& input, const at::Tensor& weight, at::IntArrayRef padding,
                             at::IntArrayRef stride, at::IntArrayRef dilation, int64_t groups, bool /*benchmark*/,
                             bool /*deterministic*/, bool /*tf32*/) {
  const at::MemoryFormat format = inside::convolution_format(input, weight);
  at::Tensor output = make(output_sizes(input, weight, padding, stride, dilation), input.scalar_type(), format);
  const at::Tensor packed = weight.contiguous(format);
  ran("aten::convolution", OperatorClass::convolution, {input, packed}, {output},
      convolution_work(input, weight, output, stride, groups));
  return output;
}

std::vector<int64_t> transposed_sizes(const at::Tensor& input, const at::Tensor& weight, at::IntArrayRef padding,
                                      at::IntArrayRef added, at::IntArrayRef stride, at::IntArrayRef dilation,
                                      int64_t groups) {
  std::vector<int64_t> sizes{input.size(0), weight.size(1) * groups};
  for (size_t i = 0; i < 2; ++i) {
    const auto dim = static_cast<int64_t>(i) + 2;
    const int64_t reach = dilation[i] * (weight.size(dim) - 1) + 1;
    sizes.push_back((input.size(dim) - 1) * stride[i] - 2 * padding[i] + reach + added[i]);
  }
  return sizes;
}

// A convolution's gradient of the input as an operator of its own: what it computes is a convolution of the output.
at::Tensor cudnn_convolution_transpose(const at::Tensor& input, const at::Tensor& weight, at::IntArrayRef padding,
                                       at::IntArrayRef added, at::IntArrayRef stride, at::IntArrayRef dilation,
                                       int64_t groups, bool /*benchmark*/, bool /*deterministic*/, bool /*tf32*/) {
  const at::MemoryFormat format = inside::convolution_format(input, weight);
  at::Tensor output =
      make(transposed_sizes(input, weight, padding, added, stride, dilation, groups), input.scalar_type(), format);
  const at::Tensor packed = weight.contiguous(format);
  ran("aten::convolution", OperatorClass::convolution_input_gradient, {input, packed}, {output},
      convolution_work(output, weight, input, stride, groups));
  return output;
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> transposed_backward(const at::Tensor& input, const at::Tensor& gradient,
                                                       const at::Tensor& weight, at::IntArrayRef /*padding*/,
                                                       at::IntArrayRef /*added*/, at::IntArrayRef stride,
                                                       at::IntArrayRef /*dilation*/, int64_t groups, bool /*benchmark*/,
                                                       bool /*deterministic*/, bool /*tf32*/,
                                                       std::array<bool, 2> wanted) {
  const Work work = convolution_work(gradient, weight, input, stride, groups);
  at::Tensor of_input;
  at::Tensor of_weight;
  const at::MemoryFormat format = inside::convolution_format(gradient, weight);
  const at::Tensor packed = gradient.contiguous(format);
  if (wanted[0]) {
    of_input = make(input.sizes(), gradient.scalar_type(), format);
    const at::Tensor lying = weight.contiguous(format);
    ran("aten::convolution_backward", OperatorClass::convolution, {packed, lying}, {of_input}, work);
  }
  if (wanted[1]) {
    const at::Tensor lying = input.contiguous(format);
    of_weight = make(weight.sizes(), gradient.scalar_type(), format);
    ran("aten::convolution_backward", OperatorClass::convolution_weight_gradient, {packed, lying}, {of_weight}, work);
  }
  return {of_input, of_weight};
}

std::tuple<at::Tensor, at::Tensor> convolution_backward(const at::Tensor& input, const at::Tensor& gradient,
                                                        const at::Tensor& weight, at::IntArrayRef /*padding*/,
                                                        at::IntArrayRef stride, at::IntArrayRef /*dilation*/,
                                                        int64_t groups, bool /*benchmark*/, bool /*deterministic*/,
                                                        bool /*tf32*/, std::array<bool, 2> wanted) {
  const Work work = convolution_work(input, weight, gradient, stride, groups);
  at::Tensor of_input;
  at::Tensor of_weight;
  if (wanted[0]) {
    const at::MemoryFormat format = inside::convolution_format(gradient, weight);
    of_input = make(input.sizes(), gradient.scalar_type(), format);
    const at::Tensor packed = gradient.contiguous(format);
    const at::Tensor lying = weight.contiguous(format);
    ran("aten::convolution_backward", OperatorClass::convolution_input_gradient, {packed, lying}, {of_input}, work);
  }
  if (wanted[1]) {
    const at::MemoryFormat format = inside::convolution_format(input, gradient);
    const at::Tensor packed = gradient.contiguous(format);
    const at::Tensor lying = input.contiguous(format);
    of_weight = make(weight.sizes(), gradient.scalar_type(), format);
    ran("aten::convolution_backward", OperatorClass::convolution_weight_gradient, {packed, lying}, {of_weight}, work);
  }
  return {of_input, of_weight};
}

std::tuple<at::Tensor, at::Tensor> depthwise_backward(const at::Tensor& gradient, const at::Tensor& input,
                                                      const at::Tensor& weight, at::IntArrayRef /*kernel*/,
                                                      at::IntArrayRef stride, at::IntArrayRef /*padding*/,
                                                      at::IntArrayRef /*dilation*/, std::array<bool, 2> wanted) {
  const at::Tensor packed = gradient.contiguous();
  const Work work = convolution_work(input, weight, packed, stride, input.size(1));
  at::Tensor of_input;
  at::Tensor of_weight;
  if (wanted[0]) {
    of_input = make(input.sizes(), gradient.scalar_type());
    ran("aten::convolution_backward", OperatorClass::convolution_input_gradient, {packed, weight}, {of_input}, work);
  }
  if (wanted[1]) {
    const at::Tensor lying = input.contiguous();
    of_weight = make(weight.sizes(), gradient.scalar_type());
    ran("aten::convolution_backward", OperatorClass::convolution_weight_gradient, {packed, lying}, {of_weight}, work);
  }
  return {of_input, of_weight};
}

void register_convolution(torch::Library& library) {
  library.impl("_conv_depthwise2d", &depthwise);
  library.impl("cudnn_convolution", &cudnn_convolution);
  library.impl("cudnn_convolution_transpose", &cudnn_convolution_transpose);
}

}  // namespace lockstep::trace
