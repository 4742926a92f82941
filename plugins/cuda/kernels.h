// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugins/cuda/cuda_plugin.h"

// The functions of lockstep_cuda that speak to CUPTI.
namespace lockstep_cuda_internal {

int kernels_start();
int kernels_push(uint64_t tag);
int kernels_pop();
int kernels_take(const lockstep_cuda_kernel** kernels, int64_t* count);

}  // namespace lockstep_cuda_internal
