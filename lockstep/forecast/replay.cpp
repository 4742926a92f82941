// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/replay.h"

#include <vector>

#include "lockstep/forecast/allocator.h"

namespace lockstep::forecast {
namespace {

using Kind = AllocatorEventKind;

class Replayer {
 public:
  Replayer(const AllocatorSettings& settings, Addresses addresses)
      : allocator_(settings), recorded_(addresses == Addresses::recorded) {}

  // False: out of memory.
  bool step(const AllocatorEvent& event) {
    ++result_.num_events;
    const bool releases = event.kind == Kind::segment_free || event.kind == Kind::segment_unmap;
    // Under other settings other segments exist: a run of releases says only that the cache was emptied.
    if (releases && !recorded_ && !releasing_) allocator_.empty_cache();
    releasing_ = releases;
    switch (event.kind) {
      case Kind::alloc:
        return allocate(event);
      case Kind::free:
        allocator_.free(handles_[event.block]);
        break;
      case Kind::free_requested:
        allocator_.request_free(handles_[event.block]);
        break;
      case Kind::free_completed:
        allocator_.complete_free(handles_[event.block]);
        break;
      case Kind::segment_alloc:
      case Kind::segment_map:
        if (recorded_) allocator_.expect_segment(event.address, event.size);
        break;
      case Kind::segment_free:
        if (recorded_) result_.num_segments_missed += !allocator_.release_segment(event.address, event.size);
        break;
      case Kind::segment_unmap:
        if (recorded_) result_.num_segments_missed += !allocator_.unmap(event.address, event.size);
        break;
      case Kind::out_of_memory:
        break;
      case Kind::peaks_reset:
        allocator_.reset_peaks();
        break;
      case Kind::preset_segment:
        if (recorded_) {
          result_.num_segments_missed +=
              !allocator_.preset_segment(event.address, event.size, event.stream, event.small);
        }
        break;
      case Kind::preset_block:
        return preset(event);
    }
    return true;
  }

  Replay finish() {
    result_.peaks = allocator_.peaks();
    result_.end = allocator_.now();
    result_.num_retries = allocator_.num_retries();
    result_.num_blocks = static_cast<int64_t>(handles_.size());
    return result_;
  }

 private:
  bool allocate(const AllocatorEvent& event) {
    const auto block = allocator_.allocate(event.size, event.stream);
    if (!block) return false;
    if (recorded_) {
      result_.num_misplaced += allocator_.address(*block) != event.address;
      result_.num_segments_missed += static_cast<int64_t>(allocator_.num_unused_expectations());
      allocator_.forget_expectations();  // the real allocator asked for them before this block
    }
    handles_.push_back(*block);
    return true;
  }

  bool preset(const AllocatorEvent& event) {
    if (!recorded_) return allocate(event);
    const auto block = allocator_.preset_block(event.address, event.size);
    if (!block) return allocate(event);
    handles_.push_back(*block);
    return true;
  }

  Allocator allocator_;
  bool recorded_;
  bool releasing_ = false;
  std::vector<Allocator::Block> handles_;
  Replay result_;
};

}  // namespace

Replay replay(const AllocatorRecording& recording) {
  return replay(recording, recording.settings, Addresses::recorded);
}

Replay replay(const AllocatorRecording& recording, const AllocatorSettings& settings, Addresses addresses) {
  Replayer replayer(settings, addresses);
  for (size_t i = 0; i < recording.events.size(); ++i) {
    if (replayer.step(recording.events[i])) continue;
    Replay result = replayer.finish();
    result.out_of_memory_at = static_cast<int64_t>(i);
    return result;
  }
  return replayer.finish();
}

}  // namespace lockstep::forecast
