// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/replay_rows.h"

#include <algorithm>
#include <filesystem>

#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::measure {
namespace {

using forecast::Addresses;
using forecast::AllocatorPeaks;

std::vector<base::Path> recording_files(const std::vector<base::Path>& paths) {
  std::vector<base::Path> files;
  for (const auto& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.path().extension() == ".rec" && forecast::kind_of_recording(entry.path()) == "allocator") {
        files.push_back(entry.path());
      }
    }
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    throw base::Error(base::Blame::user, "no allocator recordings there",
                      "give a .rec file of kind \"allocator\", or a folder of them");
  }
  return files;
}

bool same_where_recorded(const AllocatorPeaks& found, const AllocatorPeaks& recorded) {
  const auto same = [](int64_t a, int64_t b) { return b == 0 || a == b; };
  return same(found.allocated, recorded.allocated) && same(found.active, recorded.active) &&
         same(found.reserved, recorded.reserved) && same(found.requested, recorded.requested);
}

void add_peaks(base::Json& row, const std::string& prefix, const AllocatorPeaks& peaks) {
  row[prefix + "peak_allocated_bytes"] = peaks.allocated;
  row[prefix + "peak_active_bytes"] = peaks.active;
  row[prefix + "peak_reserved_bytes"] = peaks.reserved;
}

}  // namespace

bool ReplayedStream::exact() const {
  return own.num_misplaced == 0 && own.num_segments_missed == 0 && !own.out_of_memory_at &&
         same_where_recorded(own.peaks, recording.peaks);
}

double ReplayedStream::modelled_error() const {
  const auto recorded = static_cast<double>(own.peaks.reserved);
  return recorded > 0 ? static_cast<double>(modelled.peaks.reserved) / recorded - 1 : 0;
}

bool OtherSettings::any() const {
  return capacity || expandable_segments || max_split_size || roundup_power2_divisions ||
         garbage_collection_threshold || memory_fraction;
}

forecast::AllocatorSettings OtherSettings::over(forecast::AllocatorSettings settings) const {
  settings.capacity = capacity.value_or(settings.capacity);
  settings.expandable_segments = expandable_segments.value_or(settings.expandable_segments);
  settings.max_split_size = max_split_size.value_or(settings.max_split_size);
  settings.roundup_power2_divisions = roundup_power2_divisions.value_or(settings.roundup_power2_divisions);
  settings.garbage_collection_threshold = garbage_collection_threshold.value_or(settings.garbage_collection_threshold);
  if (memory_fraction) {
    settings.allowed = static_cast<int64_t>(*memory_fraction * static_cast<double>(settings.capacity));
  }
  return settings;
}

std::vector<ReplayedStream> replay_streams(const std::vector<base::Path>& paths, const OtherSettings& other) {
  std::vector<ReplayedStream> streams;
  for (const auto& file : recording_files(paths)) {
    ReplayedStream stream;
    stream.name = file.stem().string();
    stream.recording = forecast::read_allocator_recording(file);
    stream.own = forecast::replay(stream.recording);
    stream.modelled = forecast::replay(stream.recording, stream.recording.settings, Addresses::modelled);
    if (other.any()) {
      const auto settings = other.over(stream.recording.settings);
      stream.other = forecast::replay(stream.recording, settings, Addresses::modelled);
    }
    streams.push_back(std::move(stream));
  }
  return streams;
}

base::Json replay_row(const ReplayedStream& stream, const std::string& command) {
  const auto& recording = stream.recording;
  base::Json row = base::Json::object();
  row["what"] = "allocator replay";
  row["recording"] = stream.name;
  row["model"] = recording.title;
  row["batch"] = recording.batch;
  row["precision"] = recording.precision;
  row["optimizer"] = recording.optimizer;
  row["expandable_segments"] = recording.settings.expandable_segments;
  row["events"] = stream.own.num_events;
  row["blocks"] = stream.own.num_blocks;
  add_peaks(row, "", stream.own.peaks);
  row["exact"] = stream.exact();
  row["misplaced_blocks"] = stream.own.num_misplaced;
  row["peer"] = base::text("the real allocator, ", recording.source);
  add_peaks(row, "peer_", recording.peaks);
  if (recording.peaks.reserved > 0) {
    row["ratio"] = static_cast<double>(stream.own.peaks.reserved) / static_cast<double>(recording.peaks.reserved);
  }
  row["reserved_error_without_addresses"] = stream.modelled_error();
  if (stream.other) {
    add_peaks(row, "other_", stream.other->peaks);
    row["other_out_of_memory"] = stream.other->out_of_memory_at.has_value();
    row["other_retries"] = stream.other->num_retries;
  }
  row["command"] = command;
  row["commit"] = base::build_commit();
  row["machine"] = recording.device;
  return row;
}

}  // namespace lockstep::measure
