// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lockstep/forecast/recording.h"

namespace lockstep::forecast {

// What of a card and its software decides the bytes.
struct MemoryRules {
  int64_t capacity = 0;  // bytes the driver reports; 0: unlimited
  bool expandable_segments = false;
  int64_t cublas_workspace = 0;    // per thread that multiplies
  int64_t context = 0;             // the driver's, outside the allocator
  int64_t nccl = 0;                // communicator buffers, outside the allocator; counted when ranks > 1
  std::string compute_capability;  // decides workspaces of convolutions
};

struct AliveBlock {
  MemoryClass memory = MemoryClass::other;
  int64_t bytes = 0;
  std::string born_by;  // the operator that ran next: "aten::convolution forward layer1.0"
};

// A sample of the memory curve of the last step: bytes alive by class after event `event`.
struct MemoryPoint {
  int64_t event = 0;
  std::vector<int64_t> by_class;  // indexed by MemoryClass
};

struct MemoryForecast {
  int64_t peak_allocated = 0;      // warm: steps 2 and later
  int64_t peak_reserved = 0;       // warm; what the card must have beside `context` and `nccl`
  int64_t cold_peak_reserved = 0;  // step 1 while algorithms are being chosen
  int64_t fragmentation = 0;       // reserved and not allocated at the peak
  int64_t context = 0;
  int64_t nccl = 0;
  int64_t total = 0;                        // peak_reserved + context + nccl: compared with the capacity
  std::map<MemoryClass, int64_t> by_class;  // at the moment of peak_allocated
  std::string moment;                       // "step 2, backward, aten::convolution_backward of layer1.0"
  std::vector<AliveBlock> largest;          // alive at the peak, largest first, at most 20
  std::vector<MemoryPoint> curve;           // at most some hundred points
  bool fits = true;                         // total <= capacity (capacity 0: true)
};

// Replays the caching allocator over the recording from process start.
MemoryForecast forecast_memory(const Recording& recording, const MemoryRules& rules);

}  // namespace lockstep::forecast
