// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep_cuda_internal {

enum class Number { fp32, bf16, fp16 };  // of maps and tokens

}  // namespace lockstep_cuda_internal
