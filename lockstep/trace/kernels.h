// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "lockstep/forecast/recording.h"

// Inside of the trace room: the operators of the simulated GPU.
namespace lockstep::trace {

// What a kernel says of itself beside the tensors that it reads and writes.
struct Work {
  double flops = 0;
  std::vector<int64_t> shape = {};  // empty: the sizes of the largest tensor
  int64_t launches = 1;
  forecast::NumberType type = forecast::NumberType::fp32;  // with flops; else that of the largest tensor
};

// Tells the recorder that an operator runs now, on tensors that exist. In the same words as describe_call.
void ran(const char* name, forecast::OperatorClass kind, at::TensorList read, at::TensorList written, Work work = {});

// Operators that need no kernel of their own: libtorch makes their outputs (or they write in place), and a row of the
// table says what they are.
void register_table(torch::Library& library);
void register_convolution(torch::Library& library);
void register_norms(torch::Library& library);
void register_attention(torch::Library& library);
void register_kernels(torch::Library& library);  // the rest
void register_regions(torch::Library& library);  // of our own, "lockstep::..."
void register_layers(torch::Library& library);   // likewise
void register_updates(torch::Library& library);  // likewise

}  // namespace lockstep::trace
