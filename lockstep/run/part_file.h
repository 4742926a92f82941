// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "lockstep/base/json.h"
#include "lockstep/run/disk.h"

namespace lockstep::run {

using Sink = std::function<void(std::span<const std::byte>)>;

// One file of a checkpoint, given as the bytes it shall hold, in order.
struct CheckpointPart {
  std::string name;   // "weights.safetensors"
  int64_t bytes = 0;  // what write() will give: free space is checked before anything is written
  std::function<void(const Sink&)> write;
};

// Whether a document of a checkpoint may name a file so: no path leads out of its folder.
bool is_part_name(std::string_view name);

// The file's row for the manifest (name, bytes, sha256), after writing and syncing it.
base::Json write_part(Disk& disk, const base::Path& folder, const CheckpointPart& part);

// A small file, synced.
void write_text(Disk& disk, const base::Path& path, std::string_view content);

// Parts that writers on other nodes add to a checkpoint, without messages between the processes. Each writes its file
// and then the file's row into `.partitions-<token>` beside the checkpoints; the process that commits waits for the
// rows. No earlier attempt had the same token. On failure the row says so, and this throws too.
void write_partition(Disk& disk, const base::Path& checkpoints, const std::string& token, const CheckpointPart& part);

// How long the process that commits waits for a row: less when it is about to end.
struct Patience {
  double seconds = 600;
  double seconds_after_stop = 5;
  std::stop_token stop = {};
};
// Moves the partition into `draft` and returns its row. Machine error when its writer failed, or patience is over.
base::Json take_partition(Disk& disk, const base::Path& checkpoints, const std::string& token, const std::string& name,
                          const base::Path& draft, const Patience& patience);

}  // namespace lockstep::run
