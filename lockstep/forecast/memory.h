// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lockstep/catalogue/rows.h"
#include "lockstep/forecast/recording.h"

namespace lockstep::forecast {

// The properties of a GPU and its software that decide the bytes.
struct MemoryRules {
  int64_t capacity = 0;  // bytes the driver reports; 0: unlimited
  bool expandable_segments = false;
  int64_t cublas_workspace = 0;  // per thread that multiplies
  int64_t context = 0;           // the driver's, outside the allocator
  int64_t nccl = 0;              // communicator buffers, outside the allocator; counted when ranks > 1
  int64_t warps = 0;             // that the GPU runs at once: sums over rows have a buffer for each
  std::string basis = {};        // where capacity and context come from: "as the driver reports it; ..."
};

// The rules of a GPU. Context and NCCL's buffers are the H200's measured ones, carried over to other GPUs.
MemoryRules memory_rules(const catalogue::Gpu& gpu);

struct AliveBlock {
  MemoryClass memory = MemoryClass::other;
  int64_t bytes = 0;
  std::string born_by;  // the operator that ran next: "aten::convolution forward layer1.0"
};

constexpr size_t kMemoryClasses = static_cast<size_t>(MemoryClass::other) + 1;

// A sample of the memory curve of the last step: bytes alive by class after event `event`.
struct MemoryPoint {
  int64_t event = 0;
  std::array<int64_t, kMemoryClasses> by_class = {};  // indexed by MemoryClass
};

struct MemoryForecast {
  int64_t peak_allocated = 0;      // warm: steps 2 and later
  int64_t peak_reserved = 0;       // warm; what the GPU must have beside `context` and `nccl`
  int64_t cold_peak_reserved = 0;  // of step 1 and all that came before it
  int64_t fragmentation = 0;       // reserved and not allocated at the peak
  int64_t context = 0;
  int64_t nccl = 0;
  int64_t total = 0;  // peak_reserved + context + nccl: compared with the capacity
  int64_t fixed = 0;  // weights, gradients, optimizer's state, averages, buckets: the most of them at one moment
  std::map<MemoryClass, int64_t> by_class;  // at the moment of peak_allocated
  std::string moment;                       // "step 2, backward, aten::convolution_backward of layer1.0"
  std::vector<AliveBlock> largest;          // alive at the peak, largest first, at most 20
  std::vector<MemoryPoint> curve;           // at most some hundred points
  bool fits = true;                         // total <= capacity (capacity 0: true)
  int64_t beside_graph = 0;                 // of peak_reserved: what a smaller batch takes beside a captured step
  int64_t retries = 0;  // times that the GPU was full and the allocator had to empty its cache: it fits, but slowly
};

// Replays the caching allocator over the recording from process start, first with unlimited memory. Where that exceeds
// the GPU, it replays with the GPU's capacity, since giving cached segments back may make it fit (`retries`). If it
// still does not fit, the figures are those of unlimited memory: what the GPU would need. Behind a captured step the
// last one of `odd` is run, a smaller batch that the graph does not fit: what the graph holds stays, and it takes its
// own.
MemoryForecast forecast_memory(const Recording& recording, const MemoryRules& rules, const Recording* odd = nullptr);

// Memory of the host, for one node.
struct HostMemory {
  int64_t processes = 0;  // program, libraries, CUDA's own
  int64_t pinned = 0;     // batches on their way to the GPUs
  int64_t loader = 0;     // decoded and half-decoded samples, of training and evaluation
  int64_t features = 0;   // cached ones of frozen blocks
  int64_t staged = 0;     // shards copied there (data.stage "ram"), once a node
  int64_t weights = 0;    // of the checkpoint being written: one copy a node
  int64_t total = 0;

  bool operator==(const HostMemory&) const = default;
};

struct HostNeeds {
  int64_t ranks = 1;     // of this node
  int64_t loader = 0;    // bytes of each rank
  int64_t pinned = 0;    // likewise
  int64_t features = 0;  // likewise
  int64_t staged = 0;    // bytes of the node
  bool gpu = true;
};

// Bytes of the holes between blocks of C's heap on a processor, which keeps what is freed (step/memory.h), when so many
// are alive at the peak.
int64_t forecast_heap_holes(int64_t peak_allocated);

HostMemory forecast_host_memory(const Recording& recording, const HostNeeds& needs);

}  // namespace lockstep::forecast
