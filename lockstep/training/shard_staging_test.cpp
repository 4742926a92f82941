// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/shard_staging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/loader/stage.h"
#include "lockstep/shards/shard_set.h"
#include "lockstep/training/small_training.h"

namespace lockstep::training {
namespace {

void write_shards(const base::Path& folder) {
  base::make_folders(folder);
  shards::ShardList list{"test", {"a", "b"}, {}};
  shards::ShardWriter writer(folder, "shard-000000");
  for (int i = 0; i < 8; ++i) {
    const std::string jpeg = image::encode_jpeg(image::Image(8, 8), 90), label = base::text(i % 2);
    writer.add({base::text("s", i), i % 2}, {{"jpg", jpeg}, {"cls", label}});
  }
  list.shards.push_back(writer.finish());
  shards::write_shard_list(folder, list);
}

TEST(ShardStagingTest, TellsThePlanAtOnceAndTheEndOnce) {
  SmallTraining small;
  const base::Path shards = small.folder.path() / "shards", node = small.folder.path() / "node";
  write_shards(shards);
  base::make_folders(node);
  small.job.data.train = shards.string();
  small.job.data.validate.clear();
  small.job.data.samples = small.job.model.classes = 0;
  small.job.data.stage = node.string();
  const auto group = comm::single_group();
  TrainingContext context(small.job, small.options, *group);
  ShardStaging staging(context);
  staging.tell_when_done();  // nothing is under way
  staging.start();
  EXPECT_EQ(small.events("stage").size(), 1U);
  const auto& copies = context.collections.train.staging;
  ASSERT_NE(copies, nullptr);
  for (int i = 0; i < 12000 && !copies->is_done(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  staging.tell_when_done();
  staging.tell_when_done();
  ASSERT_EQ(small.events("staged").size(), 1U);
  EXPECT_EQ(small.events("staged")[0].at("shards").as_int(), 1);
  EXPECT_THAT(small.said, testing::Contains(testing::HasSubstr("all 1 shards are copied to this node")));
}

TEST(ShardStagingTest, WithoutShardsItIsAnErrorOfTheJob) {
  SmallTraining small;
  const auto group = comm::single_group();
  TrainingContext context(small.job, small.options, *group);
  ShardStaging(context).start();
  EXPECT_TRUE(small.said.empty());
  context.job.data.stage = "auto";
  EXPECT_THROW(ShardStaging(context).start(), base::Error);
}

}  // namespace
}  // namespace lockstep::training
