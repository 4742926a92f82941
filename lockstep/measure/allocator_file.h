// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "lockstep/base/file.h"
#include "lockstep/forecast/allocator_recording.h"
#include "lockstep/measure/cell.h"
#include "plugins/cuda/cuda_plugin.h"

namespace lockstep::measure {

constexpr uint64_t kPeaksReset = uint64_t{1} << 62;  // the mark at which the peaks were counted from zero

// The plug-in's acts as the events of an allocator recording. Marks other than kPeaksReset are left out.
std::vector<forecast::AllocatorEvent> allocator_events(std::span<const lockstep_cuda_act> acts);

// Writes the recording of a cell's first `steps` steps; `memory` as read at their end.
void write_allocator_file(const base::Path& path, std::span<const lockstep_cuda_act> acts, const Cell& cell,
                          const lockstep_cuda_memory& memory, int64_t steps);

}  // namespace lockstep::measure
