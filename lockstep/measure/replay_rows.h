// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/forecast/allocator_recording.h"
#include "lockstep/forecast/replay.h"

namespace lockstep::measure {

// One recorded allocator stream, replayed.
struct ReplayedStream {
  std::string name;
  forecast::AllocatorRecording recording;
  forecast::Replay own;                   // its own settings, at its own addresses
  forecast::Replay modelled;              // its own settings, at the addresses of our model of the driver
  std::optional<forecast::Replay> other;  // under the settings asked for

  // Every block at its address, every peak that was recorded equal.
  bool exact() const;
  double modelled_error() const;  // of the reserved peak
};

// Settings that differ from the recorded ones; nothing: as recorded.
struct OtherSettings {
  std::optional<int64_t> capacity;  // bytes of the GPU
  std::optional<bool> expandable_segments;
  std::optional<int64_t> max_split_size;
  std::optional<int64_t> roundup_power2_divisions;
  std::optional<double> garbage_collection_threshold;
  std::optional<double> memory_fraction;

  bool any() const;
  forecast::AllocatorSettings over(forecast::AllocatorSettings settings) const;
};

// Recordings in files and folders (their *.rec of kind "allocator", by name). User error when there is none.
std::vector<ReplayedStream> replay_streams(const std::vector<base::Path>& paths, const OtherSettings& other);

base::Json replay_row(const ReplayedStream& stream, const std::string& command);

}  // namespace lockstep::measure
