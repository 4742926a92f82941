// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "lockstep/forecast/allocator_recording.h"

namespace lockstep::forecast {

enum class Addresses { recorded, modelled };  // of the segments: as the driver gave them, or as our model of it does

// What a recorded stream does to the allocator.
struct Replay {
  AllocatorPeaks peaks;
  AllocatorPeaks end;
  int64_t num_events = 0;
  int64_t num_blocks = 0;
  int64_t num_misplaced = 0;  // blocks at another address than the recorded one; meaningful with recorded addresses
  int64_t num_segments_missed = 0;  // segments that came from the driver in one of the two worlds only; likewise
  int64_t num_retries = 0;
  std::optional<int64_t> out_of_memory_at;  // the event whose bytes could not be had: the replay ended there
};

// Replays the stream under its own settings, at its own addresses: every byte must agree.
Replay replay(const AllocatorRecording& recording);
// Replays the allocations and frees alone, under these settings: what would another GPU or setting have done?
Replay replay(const AllocatorRecording& recording, const AllocatorSettings& settings, Addresses addresses);

}  // namespace lockstep::forecast
