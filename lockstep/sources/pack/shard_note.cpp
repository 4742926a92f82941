// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/shard_note.h"

#include "lockstep/base/json.h"

namespace lockstep::sources {

std::string part_name(Part part) {
  return std::string(kPartNames[static_cast<size_t>(part)]);
}

base::Path part_folder(const base::Path& folder, const PlannedShard& shard) {
  return folder / part_name(shard.part);
}

base::Path note_path(const base::Path& folder, const PlannedShard& shard) {
  return folder / kWork / (shard.name + ".json");
}

std::optional<ShardReport> finished_before(const base::Path& folder, const PlannedShard& shard) {
  std::error_code error;
  const base::Path note = note_path(folder, shard);
  if (!std::filesystem::exists(note, error)) return std::nullopt;
  ShardReport report = ShardReport::from_json(base::read_json(note, {.max_bytes = size_t{1} << 28}));
  const auto size =
      static_cast<int64_t>(std::filesystem::file_size(part_folder(folder, shard) / (shard.name + ".tar"), error));
  if (report.summary.num_samples > 0 && (error || size != report.summary.tar_bytes)) return std::nullopt;
  return report;
}

}  // namespace lockstep::sources
