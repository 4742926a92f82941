// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/duplicates.h"

#include <gtest/gtest.h>

#include "lockstep/shards/shard_set.h"

namespace lockstep::sources {
namespace {

void write_part(const base::Path& folder, const std::vector<shards::NewSample>& samples) {
  base::make_folders(folder);
  shards::ShardWriter writer(folder, "shard-000000");
  for (const auto& sample : samples) writer.add(sample, {{"npy", "x"}});
  shards::write_shard_list(folder, {"", {"a", "b"}, {writer.finish()}});
}

TEST(DuplicatesTest, FindsLeakageBeforeMereRepetition) {
  const base::TemporaryFolder folder;
  write_part(folder.path() / "train", {{"0-a", 0, 11}, {"1-b", 0, 22}, {"2-c", 0, 22}, {"3-d", 1, 33}, {"4-e", 0, 0}});
  write_part(folder.path() / "validate", {{"5-f", 0, 33}, {"6-g", 0, 44}, {"7-h", 0, 0}});
  std::vector<SourceSample> source(8);
  for (const auto& [number, name] : {std::pair(1, "x/b.jpg"), {2, "x/c.jpg"}, {3, "x/d.jpg"}, {5, "y/f.jpg"}}) {
    source[static_cast<size_t>(number)].name = name;
  }
  const Duplicates found = find_duplicates(folder.path(), {Part::train, Part::validate}, source);
  EXPECT_EQ(found.num_groups, 2);
  EXPECT_EQ(found.num_samples, 2);
  EXPECT_EQ(found.num_across_parts, 1);
  EXPECT_EQ(found.num_across_labels, 1);
  const std::vector<DuplicateGroup> expected{
      {{"train/3-d", "validate/5-f"}, {"train: x/d.jpg", "validate: y/f.jpg"}, true, true},
      {{"train/1-b", "train/2-c"}, {"train: x/b.jpg", "train: x/c.jpg"}, false, false}};
  EXPECT_EQ(found.groups, expected);
  EXPECT_EQ(found.to_json(1).at("first").size(), 1u);
  EXPECT_EQ(
      found.to_text(),
      "\"train: x/d.jpg\"  \"validate: y/f.jpg\"  (leakage)  (two labels)\n\"train: x/b.jpg\"  \"train: x/c.jpg\"\n");
}

}  // namespace
}  // namespace lockstep::sources
