// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/spec/choice.h"

namespace lockstep::forecast {

// What PyTorch's CUDA caching allocator is told before it starts (PYTORCH_ALLOC_CONF), and the GPU below it.
struct AllocatorSettings {
  bool expandable_segments = false;
  int64_t max_split_size = 0;            // bytes; 0: none
  int64_t roundup_power2_divisions = 0;  // 0, 1: none
  double garbage_collection_threshold = 0;
  int64_t allowed = 0;   // bytes of the memory fraction; 0: no fraction was set
  int64_t capacity = 0;  // bytes that the driver can give in all; 0: as many as asked for

  bool operator==(const AllocatorSettings&) const = default;
};

struct AllocatorPeaks {
  int64_t allocated = 0;  // bytes of blocks handed out
  int64_t active = 0;     // likewise, with those that wait for another stream
  int64_t reserved = 0;   // bytes of segments
  int64_t requested = 0;  // bytes as asked for

  bool operator==(const AllocatorPeaks&) const = default;
};

// A moment of a real allocator's life.
//   alloc             block `block` of `size` bytes (as asked for) was given out at `address`
//   free              block `block` came back; with uses on other streams in two parts:
//   free_requested    the owner let go of it;  free_completed  the other streams have finished with it
//   segment_alloc     `size` bytes at `address` came from the driver;  segment_free  went back
//   segment_map       likewise the pages of an expandable segment;  segment_unmap
//   out_of_memory     `size` bytes could not be had
//   peaks_reset       the peaks count from here on
//   preset_segment, preset_block   were there when the recording began; `stream` as usual, `small`: of the small pool
LOCKSTEP_CHOICE(AllocatorEventKind, alloc, free, free_requested, free_completed, segment_alloc, segment_free,
                segment_map, segment_unmap, out_of_memory, peaks_reset, preset_segment, preset_block)

struct AllocatorEvent {
  AllocatorEventKind kind = AllocatorEventKind::alloc;
  int64_t block = 0;  // alloc and preset_block count them from 0; free, free_requested, free_completed name one
  int64_t size = 0;
  int64_t address = 0;
  int64_t stream = 0;  // in order of appearance
  bool small = false;

  bool operator==(const AllocatorEvent&) const = default;
};

// A real GPU's allocator stream, and the peaks that the real allocator counted over it.
struct AllocatorRecording {
  std::string source;  // "torch 2.11.0+cu130", "snapshot", ...
  std::string title;   // "resnet50"
  std::string device;  // "NVIDIA H200"
  std::string precision;
  std::string optimizer;
  int64_t batch = 0;
  int64_t steps = 0;
  AllocatorSettings settings;
  AllocatorPeaks peaks;  // a zero: not recorded
  std::vector<AllocatorEvent> events;

  bool operator==(const AllocatorRecording&) const = default;
};

// Turns the entries of an allocator's history, in their order, into events: numbers blocks and streams, joins the two
// halves of a free where nothing lies between them. Blocks and segments that are named but were never seen before the
// first entry are a user error.
class AllocatorHistory {
 public:
  // `stream` is the raw handle; `address` 0 for out_of_memory and peaks_reset.
  void add(AllocatorEventKind kind, int64_t address, int64_t size, int64_t stream);
  std::vector<AllocatorEvent> take() { return std::move(events_); }

 private:
  int64_t number_of_stream(int64_t handle);

  std::vector<AllocatorEvent> events_;
  std::map<int64_t, int64_t> block_at_;  // address -> block
  std::map<int64_t, int64_t> streams_;
  int64_t num_blocks_ = 0;
};

// The recording as a file (docs/formats/recording.md, kind "allocator"). As read_recording.
std::string print_allocator_recording(const AllocatorRecording& recording);
AllocatorRecording parse_allocator_recording(std::string_view content, const std::string& source);
void write_allocator_recording(const base::Path& path, const AllocatorRecording& recording);
AllocatorRecording read_allocator_recording(const base::Path& path);

// "step" or "allocator": what a recording file holds, from its first line alone.
std::string kind_of_recording(const base::Path& path);

}  // namespace lockstep::forecast
