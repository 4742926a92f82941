// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/kernels.h"

#include <cuda_runtime_api.h>
#include <cupti.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <set>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "plugins/cuda/failure.h"

namespace lockstep_cuda_internal {
namespace {

constexpr size_t kBufferBytes = 8 << 20;
constexpr auto kTagKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

// An external-correlation record stands before the record of the API call it belongs to, so both APIs are watched:
// cuDNN and cuBLAS launch through the driver's, libtorch through the runtime's.
constexpr CUpti_ActivityKind kKinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,    CUPTI_ACTIVITY_KIND_MEMCPY,  CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER};

// CUPTI calls back without a context of ours, from a thread of its own.
struct Watch {
  std::mutex mutex;
  std::vector<lockstep_cuda_kernel> seen;  // `tag` holds the correlation until take() looks it up
  std::unordered_map<uint32_t, uint64_t> tags;
  std::set<std::string> names;
  std::vector<lockstep_cuda_kernel> taken;
  bool registered = false;
};

Watch& watch() {
  static auto* const kWatch = new Watch;  // never destroyed: CUPTI may call until the process ends
  return *kWatch;
}

void check(CUptiResult result, const char* call) {
  if (result == CUPTI_SUCCESS) return;
  const char* words = nullptr;
  cuptiGetResultString(result, &words);
  throw std::runtime_error(std::string(call) + ": " + (words ? words : "unknown"));
}

const char* keep_name(Watch& to, const char* name) {
  return to.names.insert(name ? name : "").first->c_str();
}

void add(Watch& to, const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL: {
      const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
      to.seen.push_back({kernel->correlationId, static_cast<int64_t>(kernel->start), static_cast<int64_t>(kernel->end),
                         0, LOCKSTEP_CUDA_KERNEL, static_cast<int32_t>(kernel->streamId), keep_name(to, kernel->name)});
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto* copy = reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
      to.seen.push_back({copy->correlationId, static_cast<int64_t>(copy->start), static_cast<int64_t>(copy->end),
                         static_cast<int64_t>(copy->bytes), LOCKSTEP_CUDA_COPY, static_cast<int32_t>(copy->streamId),
                         keep_name(to, copy->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD   ? "copy to device"
                                       : copy->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH ? "copy to host"
                                                                                           : "copy")});
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto* set = reinterpret_cast<const CUpti_ActivityMemset4*>(record);
      to.seen.push_back({set->correlationId, static_cast<int64_t>(set->start), static_cast<int64_t>(set->end),
                         static_cast<int64_t>(set->bytes), LOCKSTEP_CUDA_SET, static_cast<int32_t>(set->streamId),
                         keep_name(to, "set")});
      break;
    }
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto* link = reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record);
      if (link->externalKind == kTagKind) to.tags[link->correlationId] = link->externalId;
      break;
    }
    default:
      break;
  }
}

void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *size = *buffer ? kBufferBytes : 0;
  *records = 0;
}

void CUPTIAPI take_buffer(CUcontext /*context*/, uint32_t /*stream*/, uint8_t* buffer, size_t /*size*/, size_t valid) {
  Watch& to = watch();
  {
    const std::lock_guard lock(to.mutex);
    CUpti_Activity* record = nullptr;
    while (valid > 0 && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) add(to, record);
  }
  std::free(buffer);
}

}  // namespace

int kernels_start() {
  return guarded([] {
    Watch& to = watch();
    if (!to.registered) check(cuptiActivityRegisterCallbacks(&give_buffer, &take_buffer), "CUPTI register");
    to.registered = true;
    {
      const std::lock_guard lock(to.mutex);
      to.seen.clear();
      to.tags.clear();
    }
    for (const auto kind : kKinds) check(cuptiActivityEnable(kind), "CUPTI enable");
  });
}

int kernels_push(uint64_t tag) {
  return guarded([&] { check(cuptiActivityPushExternalCorrelationId(kTagKind, tag), "CUPTI push"); });
}

int kernels_pop() {
  return guarded([] {
    uint64_t last = 0;
    check(cuptiActivityPopExternalCorrelationId(kTagKind, &last), "CUPTI pop");
  });
}

int kernels_take(const lockstep_cuda_kernel** kernels, int64_t* count) {
  return guarded([&] {
    if (const auto error = cudaDeviceSynchronize(); error != cudaSuccess) {
      throw std::runtime_error(cudaGetErrorString(error));
    }
    check(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "CUPTI flush");
    for (const auto kind : kKinds) cuptiActivityDisable(kind);
    Watch& from = watch();
    const std::lock_guard lock(from.mutex);
    from.taken = std::move(from.seen);
    from.seen.clear();
    for (auto& kernel : from.taken) {
      const auto found = from.tags.find(static_cast<uint32_t>(kernel.tag));
      kernel.tag = found == from.tags.end() ? 0 : found->second;
    }
    from.tags.clear();
    std::stable_sort(from.taken.begin(), from.taken.end(),
                     [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
    *kernels = from.taken.data();
    *count = static_cast<int64_t>(from.taken.size());
  });
}

}  // namespace lockstep_cuda_internal
