// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "lockstep/site/nvml.h"

namespace lockstep::step {

// Decides the device of this process: "cpu", or "cuda", which opens libtorch_cuda.so beside the libtorch_cpu.so in use.
// Call it once, before any other torch call: libtorch asks for CUDA once and remembers "none" for good, even after one
// manual_seed or one CPU backward. User error for another word or more ranks than GPUs; machine error without driver,
// GPU or library; bug when torch was used before.
at::Device open_device(const std::string& name, int64_t local_rank);

// Machine error for a driver or a GPU that libtorch, built with the CUDA of `runtime` (13000: 13.0), cannot use.
// `index`: of the GPU among those of the report; beyond them, or where they differ: only the driver is looked at.
void check_gpu(const site::GpuReport& report, size_t index, int64_t runtime);
// In words, who else uses the GPU; empty: nobody, as far as its memory shows.
std::string gpu_company(const site::GpuReport& report, size_t index);

// Bug unless libtorch's view of CUDA is the one of libtorch_cuda.so.
void ensure_torch_sees_cuda();

}  // namespace lockstep::step
