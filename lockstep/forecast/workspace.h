// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/forecast/memory.h"
#include "lockstep/forecast/recording.h"

namespace lockstep::forecast {

// Bytes that a call takes from the allocator for its own time, beside its inputs and outputs; 0: none. The rules were
// read off one H200 (PyTorch 2.11, cuDNN 9, channels last, cudnn.benchmark off) and are carried over to other GPUs.
// `layout` is that of images; a call with others of its own kind is not told apart.
int64_t call_workspace(const Operator& call, const MemoryRules& rules, Layout layout = Layout::channels_last);

// Of a convolution and its two gradients: cuDNN's first choice. What it does with the operands:
//   16 bit  copies of images with fewer than 8 channels, padded to 8; scratch of the split sums of weight gradients,
//           up to 16.5 MiB, none over few pixels; of depthwise ones 32 bytes for each weight and sample
//   tf32    likewise; the first layer copies its input (forward), its padded input and the output's gradient
//   fp32    the kernels know channels-first only, so inputs, outputs and large kernels are copied there and back;
//           3x3 layers go forward by Fourier transforms where cuDNN likes to (2.7 GB in VGG-16 at batch 32), and their
//           weight gradients by Winograd's F(4x4): 36/16 of the padded images and 4 times the weights on top; other
//           weight gradients need nothing
int64_t convolution_workspace(const Operator& call, Layout layout = Layout::channels_last);

}  // namespace lockstep::forecast
