// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <string>

namespace lockstep::step {

// Decides the device of this process: "cpu", or "cuda", which opens libtorch_cuda.so beside the libtorch_cpu.so in use.
// Call it once, before any other torch call: libtorch asks for CUDA once and remembers "none" for good, even after one
// manual_seed or one CPU backward. User error for another word or more ranks than GPUs; machine error without driver,
// GPU or library; bug when torch was used before.
at::Device open_device(const std::string& name, int64_t local_rank);

// Bug unless libtorch's view of CUDA is the one of libtorch_cuda.so.
void ensure_torch_sees_cuda();

}  // namespace lockstep::step
