// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/forecast/recording.h"

namespace lockstep::forecast {

// Bytes that a batch norm or a layer norm's gradient takes from the allocator for the time of the call. The rules give
// the bytes that were measured on an H200 (PyTorch 2.11, cuDNN 9.19, channels last) exactly, for batches of 1 to 512.
//   cuDNN's batch norm    partial sums of tiles of 64 channels: forward one for 64 rows (fp16: 160), backward for 96
//   libtorch's own        partial sums of every block of threads that shares a channel with others, at most 128
//   layer norm's weights  from 65,536 rows on: partial sums of 32 rows, at most 2^20 of them
int64_t norm_workspace(const Operator& call);

}  // namespace lockstep::forecast
