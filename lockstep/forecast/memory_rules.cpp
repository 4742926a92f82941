// SPDX-License-Identifier: Apache-2.0
// What of a GPU and its software decides the bytes: the rules of a GPU, and the host's side.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/forecast/memory.h"

namespace lockstep::forecast {
namespace {

constexpr int64_t kMega = 1'000'000;

// Of the maker's gigabytes (2^30) the driver keeps a part; GDDR GPUs lose 1/16 more to error correction. GPUs whose
// driver figure is known: 0.937 (L40S, L4, K80, T4 0.92), 0.986-0.996 (V100 to B200).
constexpr double kGddrShare = 0.92;
constexpr double kHbmShare = 0.985;
constexpr double kHbmFrom = 700;  // GB/s: no GDDR GPU with error correction comes near, the P100 is above

// Memory in use beside the allocator's segments after a dozen steps on an H200 (driver 580, PyTorch 2.11, lazy
// loading): 804 to 808 MB over 50 cells; the greatest.
constexpr int64_t kContext = 808'255'488;
// NCCL's channels with their buffers on 8 ranks (4 MiB and the low-latency ones each); ROCm's first communicator: 1
// GiB.
constexpr int64_t kNccl = 500 * kMega;
constexpr int64_t kRccl = 1074 * kMega;

constexpr int64_t kWorkspaceHopper = int64_t{32} << 20;
constexpr int64_t kWorkspaceBefore = 8'519'680;  // 2 x 4096 KiB + 8 x 16 KiB

// Cores of one multiprocessor and the warps it keeps, by generation (CUDA programming guide, compute capabilities).
struct Multiprocessor {
  int from;  // compute capability x 10
  int64_t cores;
  int64_t warps;
};
constexpr Multiprocessor kMultiprocessors[] = {{120, 128, 48}, {90, 128, 64}, {86, 128, 48}, {80, 64, 64},
                                               {75, 64, 32},   {70, 64, 64},  {61, 128, 64}, {60, 64, 64},
                                               {50, 128, 64},  {30, 192, 64}};

int64_t warps_of(const catalogue::Gpu& gpu) {
  const int capability = static_cast<int>(std::lround(std::atof(gpu.compute_capability.value_or("0").c_str()) * 10));
  for (const auto& processor : kMultiprocessors) {
    if (capability >= processor.from) return gpu.cores.value_or(0) / processor.cores * processor.warps;
  }
  return 0;
}

// Resident memory of our process: program and libtorch; with CUDA its libraries, kernels and mapped code too. On a
// processor twelve jobs had 57 to 253 MB beside all that is counted (median 138): C's allocator keeps what is freed.
constexpr int64_t kProcessCpu = 150 * kMega;
constexpr int64_t kProcessGpu = 2500 * kMega;

// The C library cannot put an aligned block into the hole that one of its size has left (glibc before 2.38), so the
// heap grows over some dozen steps: EfficientNet-Lite0 had 1.13 to 1.42 times what was alive after 100 steps and more,
// and 1.0 times where every block was given back to the kernel at once.
constexpr double kHeapHoles = 0.25;

}  // namespace

int64_t forecast_heap_holes(int64_t peak_allocated) {
  return std::llround(kHeapHoles * static_cast<double>(peak_allocated));
}

MemoryRules memory_rules(const catalogue::Gpu& gpu) {
  MemoryRules rules;
  if (gpu.driver_memory_mib) {
    rules.capacity = *gpu.driver_memory_mib << 20;
    rules.basis = "memory as the driver reports it";
  } else if (gpu.memory_gb) {
    const double share = gpu.bandwidth_gbs.value_or(0) >= kHbmFrom ? kHbmShare : kGddrShare;
    rules.capacity = std::llround(*gpu.memory_gb * share * 1024) << 20;
    rules.basis = base::text("memory: ", share, " of the maker's figure");
  } else {
    throw base::Error(base::Blame::user, base::text("the catalogue does not say how much memory ", gpu.id, " has"),
                      "add memory_gb to its row (~/.config/lockstep/catalogue/*.json)");
  }
  rules.context = kContext;
  rules.basis += gpu.id == "h200" ? "; context as measured" : "; context as measured on an H200";
  rules.nccl = gpu.vendor == "AMD" ? kRccl : kNccl;
  rules.warps = warps_of(gpu);
  const int major = std::atoi(gpu.compute_capability.value_or("").c_str());
  rules.cublas_workspace = major == 9 || major == 10 ? kWorkspaceHopper : kWorkspaceBefore;
  return rules;
}

HostMemory forecast_host_memory(const Recording& recording, const HostNeeds& needs) {
  HostMemory host;
  host.processes = needs.ranks * (needs.gpu ? kProcessGpu : kProcessCpu);
  host.pinned = needs.ranks * needs.pinned;
  host.loader = needs.ranks * needs.loader;
  host.features = needs.ranks * needs.features;
  host.staged = needs.staged;
  host.weights = recording.checkpoint_bytes;
  host.total = host.processes + host.pinned + host.loader + host.features + host.staged + host.weights;
  return host;
}

}  // namespace lockstep::forecast
