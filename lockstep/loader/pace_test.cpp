// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/pace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::loader {
namespace {

TEST(PaceTest, SaysNothingWhileTheStepsHardlyWait) {
  EXPECT_FALSE(find_bottleneck({{1, 2, 1, 0, 100}, 2, 10, 0.4}));
  EXPECT_FALSE(find_bottleneck({{}, 2, 10, 9}));  // nothing was loaded
}

TEST(PaceTest, NamesThePipelineStageAndTheCoresThatAreMissing) {
  // Ten seconds, six of them waiting: 20 thread seconds of work must fit into 4 seconds, so 5 threads.
  const auto found = find_bottleneck({{2, 12, 5, 1, 1000}, 2, 10, 6});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->pipeline_stage, "decode");
  EXPECT_DOUBLE_EQ(found->pipeline_stage_share, 0.6);
  EXPECT_DOUBLE_EQ(found->waited_share, 0.6);
  EXPECT_DOUBLE_EQ(found->threads_needed, 5);
  EXPECT_EQ(found->more_cores, 3);
  EXPECT_THAT(found->to_text(), testing::HasSubstr("3 more cores"));
}

TEST(PaceTest, AsksForNoThreadWhereThoseThereWouldDo) {
  // Two seconds of work for two threads in eight: they waited for a core, not for each other.
  const auto found = find_bottleneck({{0, 2, 0, 0, 1000}, 2, 10, 2});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->more_cores, 0);
  EXPECT_THAT(found->to_text(), testing::HasSubstr("if the steps left a core to them"));
}

TEST(PaceTest, CoresDoNotHelpASlowDisk) {
  const auto found = find_bottleneck({{15, 3, 1, 1, 1000}, 2, 10, 5});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->pipeline_stage, "read");
  EXPECT_THAT(found->to_text(), testing::HasSubstr("a faster disk or shards"));
  const std::string of_shards = find_bottleneck({{15, 3, 1, 1, 1000}, 2, 10, 5, true})->to_text();
  EXPECT_THAT(of_shards, testing::HasSubstr("a copy on this node (data.stage) or data.order=windows"));
  EXPECT_THAT(of_shards, testing::Not(testing::HasSubstr("lockstep prep")));
}

TEST(PaceTest, PipelineSecondsAddAndSubtract) {
  PipelineSeconds sum{1, 2, 3, 4, 5};
  sum += {1, 1, 1, 1, 1};
  EXPECT_DOUBLE_EQ(sum.sum(), 14);
  EXPECT_DOUBLE_EQ((sum - PipelineSeconds{2, 3, 4, 5, 6}).sum(), 0);
  EXPECT_EQ((sum - PipelineSeconds{2, 3, 4, 5, 6}).samples, 0);
}

}  // namespace
}  // namespace lockstep::loader
