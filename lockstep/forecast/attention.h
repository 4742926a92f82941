// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/catalogue/rows.h"
#include "lockstep/spec/choice.h"

namespace lockstep::forecast {

// The kernels of scaled_dot_product_attention. Which one runs decides the operators of a step, the bytes that they keep
// and the rows of the calibration that are like them: the tracer, the forecast and `bench` go by this one rule.
LOCKSTEP_CHOICE(Attention, flash, cudnn, efficient, math)

// What PyTorch 2.11 takes (sdp_utils.cpp; cuDNN 9.15.1 or newer, as with CUDA 13), where the shapes allow it:
//   16 bit  compute capability 9.x and 10.x (H100, H200, B200): cudnn; others from 8.0 on, 12.x among them: flash;
//           before: fp16 (amp) efficient from 5.0 on, bf16 math, since only kernels for 8.0 and newer know it
//   32 bit  efficient from 5.0 on, else math
// GPUs of other makers: flash in 16 bit, else efficient. No GPU: math.
Attention choose_attention(const catalogue::Gpu* gpu, const std::string& precision);

}  // namespace lockstep::forecast
