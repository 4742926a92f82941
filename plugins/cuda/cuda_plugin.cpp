// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/cuda_plugin.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "plugins/cuda/failure.h"
#include "plugins/cuda/kernels.h"

struct lockstep_cuda_event {
  cudaEvent_t event = nullptr;
};

namespace lockstep_cuda_internal {

std::string& last_failure() {
  thread_local std::string words;
  return words;
}

namespace {

namespace caching = c10::cuda::CUDACachingAllocator;
using c10::CachingDeviceAllocator::TraceEntry;

static_assert(static_cast<int>(TraceEntry::ALLOC) == LOCKSTEP_CUDA_ALLOC);
static_assert(static_cast<int>(TraceEntry::FREE_REQUESTED) == LOCKSTEP_CUDA_FREE_REQUESTED);
static_assert(static_cast<int>(TraceEntry::FREE_COMPLETED) == LOCKSTEP_CUDA_FREE_COMPLETED);
static_assert(static_cast<int>(TraceEntry::SEGMENT_ALLOC) == LOCKSTEP_CUDA_SEGMENT_ALLOC);
static_assert(static_cast<int>(TraceEntry::SEGMENT_FREE) == LOCKSTEP_CUDA_SEGMENT_FREE);
static_assert(static_cast<int>(TraceEntry::SEGMENT_MAP) == LOCKSTEP_CUDA_SEGMENT_MAP);
static_assert(static_cast<int>(TraceEntry::SEGMENT_UNMAP) == LOCKSTEP_CUDA_SEGMENT_UNMAP);
static_assert(static_cast<int>(TraceEntry::OOM) == LOCKSTEP_CUDA_OOM);

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // or libtorch's next check would find it
  throw std::runtime_error(cudaGetErrorString(error));
}

const char* failure() {
  return last_failure().c_str();
}

int synchronize() {
  return guarded([] { check(cudaDeviceSynchronize()); });
}

int memory_info(int64_t* free_bytes, int64_t* total_bytes) {
  return guarded([&] {
    size_t free = 0;
    size_t total = 0;
    check(cudaMemGetInfo(&free, &total));
    *free_bytes = static_cast<int64_t>(free);
    *total_bytes = static_cast<int64_t>(total);
  });
}

int memory(int32_t device, lockstep_cuda_memory* out) {
  return guarded([&] {
    const auto stats = caching::getDeviceStats(static_cast<c10::DeviceIndex>(device));
    constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    out->now = {stats.allocated_bytes[kAll].current, stats.active_bytes[kAll].current,
                stats.reserved_bytes[kAll].current, stats.requested_bytes[kAll].current};
    out->peak = {stats.allocated_bytes[kAll].peak, stats.active_bytes[kAll].peak, stats.reserved_bytes[kAll].peak,
                 stats.requested_bytes[kAll].peak};
    out->retries = stats.num_alloc_retries;
  });
}

int reset_peaks(int32_t device) {
  return guarded([&] { caching::resetPeakStats(static_cast<c10::DeviceIndex>(device)); });
}

int empty_cache() {
  return guarded([] { caching::emptyCache(); });
}

// A tracker, once attached, stays: `on` decides whether it writes. It is called under the allocator's lock.
struct History {
  std::atomic<bool> on = false;
  std::mutex mutex;
  std::vector<lockstep_cuda_act> acts;
  std::vector<lockstep_cuda_act> taken;
  std::vector<std::thread::id> threads;
  bool attached = false;

  int32_t thread_index() {  // REQUIRES: mutex held
    const auto self = std::this_thread::get_id();
    for (size_t i = 0; i < threads.size(); ++i) {
      if (threads[i] == self) return static_cast<int32_t>(i);
    }
    threads.push_back(self);
    return static_cast<int32_t>(threads.size() - 1);
  }

  void add(int32_t action, uint64_t address, int64_t bytes, uint64_t stream) {
    const std::lock_guard lock(mutex);
    acts.push_back({action, thread_index(), address, bytes, stream});
  }
};

History& history() {
  static auto* const kHistory = new History;  // never destroyed: the allocator may free until the process ends
  return *kHistory;
}

int history_start() {
  return guarded([] {
    History& to = history();
    if (!to.attached) {
      caching::attachAllocatorTraceTracker([](const TraceEntry& entry) {
        History& history_of_all = history();
        if (!history_of_all.on) return;
        history_of_all.add(static_cast<int32_t>(entry.action_), entry.addr_, static_cast<int64_t>(entry.size_),
                           reinterpret_cast<uint64_t>(entry.stream_));
      });
      to.attached = true;
    }
    {
      const std::lock_guard lock(to.mutex);
      to.acts.clear();
      to.acts.reserve(size_t{1} << 18);
      to.thread_index();
    }
    to.on = true;
  });
}

int history_stop() {
  return guarded([] { history().on = false; });
}

int history_mark(uint64_t tag) {
  return guarded([&] {
    if (history().on) history().add(LOCKSTEP_CUDA_MARK, tag, 0, 0);
  });
}

int history_take(const lockstep_cuda_act** acts, int64_t* count) {
  return guarded([&] {
    History& from = history();
    const std::lock_guard lock(from.mutex);
    from.taken = std::move(from.acts);
    from.acts.clear();
    *acts = from.taken.data();
    *count = static_cast<int64_t>(from.taken.size());
  });
}

int event_create(lockstep_cuda_event** out) {
  return guarded([&] {
    cudaEvent_t made = nullptr;
    check(cudaEventCreate(&made));
    *out = new lockstep_cuda_event{made};
  });
}

int event_record(lockstep_cuda_event* event) {
  return guarded([&] { check(cudaEventRecord(event->event, c10::cuda::getCurrentCUDAStream().stream())); });
}

int event_seconds(lockstep_cuda_event* from, lockstep_cuda_event* to, double* out) {
  return guarded([&] {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, from->event, to->event));
    *out = static_cast<double>(milliseconds) / 1000;
  });
}

int event_destroy(lockstep_cuda_event* event) {
  return guarded([&] {
    const cudaError_t result = cudaEventDestroy(event->event);
    delete event;
    check(result);
  });
}

}  // namespace
}  // namespace lockstep_cuda_internal

extern "C" __attribute__((visibility("default"))) const lockstep_cuda* lockstep_cuda_plugin(void) {
  using namespace lockstep_cuda_internal;
  static const lockstep_cuda table = {LOCKSTEP_CUDA_VERSION, failure,      synchronize,   memory_info,   memory,
                                      reset_peaks,           empty_cache,  history_start, history_stop,  history_mark,
                                      history_take,          event_create, event_record,  event_seconds, event_destroy,
                                      kernels_start,         kernels_push, kernels_pop,   kernels_take};
  return &table;
}
