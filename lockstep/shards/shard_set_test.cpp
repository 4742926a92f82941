// SPDX-License-Identifier: Apache-2.0
#include "lockstep/shards/shard_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/shards/small_shards.h"

namespace lockstep::shards {
namespace {

using testing::HasSubstr;

class ShardSetTest : public testing::Test {
 protected:
  std::string complaint() const {
    try {
      const ShardSet set(shards_.folder.path());
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), base::Blame::user);
      return error.what();
    }
    return "no complaint";
  }

  SmallShards shards_;
};

TEST_F(ShardSetTest, CountsSamplesThroughTheShards) {
  const ShardSet set(shards_.folder.path());
  EXPECT_EQ(set.classes(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(set.num_shards(), 2);
  EXPECT_EQ(set.size(), 5);
  EXPECT_EQ(set.position_of(3).shard, 1);
  EXPECT_EQ(set.position_of(3).sample, 0);
  EXPECT_EQ(set.index(1).sample(0).key, "00003-pet");
}

TEST_F(ShardSetTest, NamesWhatIsMissingOrOfAnotherLength) {
  base::FileWriter(shards_.folder.path() / "shard-000001.tar", base::FileWriter::Mode::append).write("x");
  EXPECT_THAT(complaint(), HasSubstr("shard-000001.tar: "));
  std::filesystem::remove(shards_.folder.path() / "shard-000001.tar");
  EXPECT_THAT(complaint(), HasSubstr("shard-000001.tar: the shard is missing"));
  std::filesystem::remove(shards_.folder.path() / "shard-000000.sxi");
  EXPECT_THAT(complaint(), HasSubstr("shard-000000.sxi: there is no such file"));
}

TEST_F(ShardSetTest, KnowsHowManyObjectsASampleHasAtMost) {
  EXPECT_EQ(ShardSet(shards_.folder.path()).most_objects(), 0) << "nobody has counted";
  ShardList list = read_shard_list(shards_.folder.path());
  list.most_objects = 7;
  write_shard_list(shards_.folder.path(), list);
  EXPECT_EQ(read_shard_list(shards_.folder.path()), list);
  EXPECT_EQ(ShardSet(shards_.folder.path()).most_objects(), 7);
}

TEST_F(ShardSetTest, RefusesAListThatLeadsOutOfItsFolder) {
  base::write_file(shards_.folder.path() / kShardList,
                   R"({"classes": [], "shardlist": [{"url": "../shard-000000.tar"}]})");
  EXPECT_THAT(complaint(), HasSubstr("\"../shard-000000.tar\" is no NAME.tar beside the list"));
}

}  // namespace
}  // namespace lockstep::shards
