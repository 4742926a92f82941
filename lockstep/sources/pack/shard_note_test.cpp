// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/shard_note.h"

#include <gtest/gtest.h>

namespace lockstep::sources {
namespace {

TEST(ShardNoteTest, AShardIsFinishedWhenItsNoteAndItsTarFileAgree) {
  const base::TemporaryFolder folder;
  const PlannedShard shard{Part::validate, "validate-000002", {1, 2}, 100};
  EXPECT_EQ(part_folder(folder.path(), shard), folder.path() / "validate");
  for (const auto& path : {part_folder(folder.path(), shard), folder.path() / kWork}) base::make_folders(path);
  EXPECT_EQ(finished_before(folder.path(), shard), std::nullopt);
  ShardReport report;
  report.summary = {"validate-000002", 2, 5, 17};
  base::write_json(note_path(folder.path(), shard), report.to_json());
  EXPECT_EQ(finished_before(folder.path(), shard), std::nullopt);  // no tar file
  const base::Path tar = folder.path() / "validate/validate-000002.tar";
  base::write_file(tar, "four");
  EXPECT_EQ(finished_before(folder.path(), shard), std::nullopt);
  base::write_file(tar, "fives");
  EXPECT_EQ(finished_before(folder.path(), shard), report);
}

TEST(ShardNoteTest, AShardOfRefusedSamplesHasNoTarFile) {
  const base::TemporaryFolder folder;
  const PlannedShard shard{Part::train, "train-000000", {1}, 100};
  base::make_folders(folder.path() / kWork);
  ShardReport report;
  report.refused = {{"a.jpg", "no image"}};
  base::write_json(note_path(folder.path(), shard), report.to_json());
  EXPECT_EQ(finished_before(folder.path(), shard), report);
}

}  // namespace
}  // namespace lockstep::sources
