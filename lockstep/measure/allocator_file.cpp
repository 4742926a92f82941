// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/allocator_file.h"

#include <torch/version.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/measure/bench.h"

namespace lockstep::measure {
namespace {

using forecast::AllocatorEventKind;

std::optional<AllocatorEventKind> event_kind(const lockstep_cuda_act& act) {
  switch (act.action) {
    case LOCKSTEP_CUDA_ALLOC:
      return AllocatorEventKind::alloc;
    case LOCKSTEP_CUDA_FREE_REQUESTED:
      return AllocatorEventKind::free_requested;
    case LOCKSTEP_CUDA_FREE_COMPLETED:
      return AllocatorEventKind::free_completed;
    case LOCKSTEP_CUDA_SEGMENT_ALLOC:
      return AllocatorEventKind::segment_alloc;
    case LOCKSTEP_CUDA_SEGMENT_FREE:
      return AllocatorEventKind::segment_free;
    case LOCKSTEP_CUDA_SEGMENT_MAP:
      return AllocatorEventKind::segment_map;
    case LOCKSTEP_CUDA_SEGMENT_UNMAP:
      return AllocatorEventKind::segment_unmap;
    case LOCKSTEP_CUDA_OOM:
      return AllocatorEventKind::out_of_memory;
    case LOCKSTEP_CUDA_MARK:
      return act.address == kPeaksReset ? std::optional(AllocatorEventKind::peaks_reset) : std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::vector<forecast::AllocatorEvent> allocator_events(std::span<const lockstep_cuda_act> acts) {
  forecast::AllocatorHistory history;
  for (const auto& act : acts) {
    const auto kind = event_kind(act);
    if (!kind) continue;
    const bool has_address = *kind != AllocatorEventKind::out_of_memory && *kind != AllocatorEventKind::peaks_reset;
    history.add(*kind, has_address ? static_cast<int64_t>(act.address) : 0, act.bytes,
                static_cast<int64_t>(act.stream));
  }
  return history.take();
}

void write_allocator_file(const base::Path& path, std::span<const lockstep_cuda_act> acts, const Cell& cell,
                          const lockstep_cuda_memory& memory, int64_t steps) {
  forecast::AllocatorRecording recording;
  recording.source = base::text("torch ", TORCH_VERSION, ", lockstep bench cells");
  recording.title = cell.job.model.name;
  recording.device = machine_name(at::kCUDA);
  recording.precision = name_of(cell.job.training.precision);
  recording.optimizer = name_of(cell.job.training.optimizer.name);
  recording.batch = cell.job.training.global_batch;
  recording.steps = steps;
  recording.settings.expandable_segments = cell.expandable_segments;
  recording.peaks = {memory.peak.allocated, memory.peak.active, memory.peak.reserved, memory.peak.requested};
  recording.events = allocator_events(acts);
  forecast::write_allocator_recording(path, recording);
}

}  // namespace lockstep::measure
