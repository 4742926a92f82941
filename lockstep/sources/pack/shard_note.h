// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "lockstep/base/file.h"
#include "lockstep/sources/pack/folder_lock.h"
#include "lockstep/sources/pack/pack_plan.h"
#include "lockstep/sources/pack/statistics.h"

namespace lockstep::sources {

std::string part_name(Part part);

// Where the shard's files lie, and the note of what was counted in it once it is finished.
base::Path part_folder(const base::Path& folder, const PlannedShard& shard);
base::Path note_path(const base::Path& folder, const PlannedShard& shard);

// What the note of a shard says that an earlier session has finished; nothing where it has not.
std::optional<ShardReport> finished_before(const base::Path& folder, const PlannedShard& shard);

}  // namespace lockstep::sources
