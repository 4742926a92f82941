// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <span>
#include <vector>

#include "lockstep/forecast/recording.h"

namespace lockstep::trace {

// One call of an operator as the forecast sees it: class, number type, FLOPs, bytes, and the sizes that decide its
// speed. The simulated device and the timing of a real one both ask here, so that their rows mean the same. `phase` and
// `block` are the caller's to fill. One part, but two for a convolution_backward that makes both gradients.
using Parts = std::vector<forecast::Operator>;

// In two halves, because whoever watches operators sees the arguments before the call and the results after it.
// Arguments in the order of the schema.
Parts describe_call(const c10::FunctionSchema& schema, std::span<const c10::IValue> arguments);
// Adds what the call wrote.
void add_results(Parts& parts, const c10::FunctionSchema& schema, std::span<const c10::IValue> results);

forecast::OperatorClass class_of(const c10::FunctionSchema& schema);

// The words of a description: what is read of a tensor, its number type, and that of a product over it.
double tensor_bytes(const at::Tensor& tensor);
forecast::NumberType plain_type(at::ScalarType type);
forecast::NumberType product_type(const at::Tensor& tensor, forecast::OperatorClass kind);

// True for an operator that only calls others and is not itself what a device executes ("aten::conv2d" calls
// "aten::convolution"): what is timed or recorded is the first operator below those, and nothing inside it. This is the
// level at which autograd hands over to the device.
bool is_composite(const c10::OperatorName& name);

}  // namespace lockstep::trace
