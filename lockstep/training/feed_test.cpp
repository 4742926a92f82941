// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/feed.h"

#include <gtest/gtest.h>

#include "lockstep/training/small_training.h"

namespace lockstep::training {
namespace {

std::string never() {
  return "";
}

TEST(FeedTest, GivesWhatTheLoaderGivesFromWhereTheRunStands) {
  SmallTraining small;
  const auto group = comm::single_group();
  TrainingContext context(small.job, small.options, *group);
  const run::PhaseSpan& span = context.timetable.phase_at(0);
  Feed whole(context, span, never);
  for (; context.state.step < 2; ++context.state.step) whole.next();
  const step::Samples third = whole.next();
  EXPECT_EQ(third.step, 2);
  EXPECT_EQ(third.global_size, 8);
  EXPECT_EQ(whole.batch().size(), 8);
  EXPECT_FALSE(whole.validation().has_value());

  Feed resumed(context, span, never);
  EXPECT_TRUE(resumed.next().fields.at("image").equal(third.fields.at("image")));
  context.state.step = 0;
  context.state.data_shift = 2;  // a rewind left two batches out
  Feed rewound(context, span, never);
  const step::Samples again = rewound.next();
  EXPECT_EQ(again.step, 0);
  EXPECT_TRUE(again.fields.at("image").equal(third.fields.at("image")));
}

spec::Phase frozen_phase(const std::string& train_from) {
  spec::Phase phase;
  phase.epochs = 2;
  phase.train_from = train_from;
  phase.cache_features = true;
  return phase;
}

TEST(FeedTest, GivesFeaturesOfFrozenBlocksInTheOrderOfTheLoader) {
  SmallTraining small;
  small.job.training.epochs = 0;
  small.job.training.phases = {frozen_phase("head")};
  const auto group = comm::single_group();
  TrainingContext context(small.job, small.options, *group);
  const run::PhaseSpan& span = context.timetable.phase_at(0);
  Feed feed(context, span, never);
  EXPECT_EQ(feed.loader(), nullptr);
  EXPECT_EQ(first_trained(context, span), context.network.index_of("head"));
  ASSERT_TRUE(feed.validation().has_value());
  EXPECT_EQ(feed.validation()->num_samples(), 24);
  const step::Samples cached = feed.next();
  EXPECT_EQ(cached.from, first_trained(context, span));
  EXPECT_EQ(small.events("features").size(), 2U);
  run::PhaseSpan images = span;
  images.phase.cache_features = false;
  EXPECT_TRUE(Feed(context, images, never).next().fields.at("label").equal(cached.fields.at("label")));
}

TEST(FeedTest, OneRankThatWantsToStopStopsTheFeaturesOfAll) {
  SmallTraining small;
  small.job.training.epochs = 0;
  small.job.training.phases = {frozen_phase("head")};
  comm::run_thread_ranks(2, [&](comm::Group& group) {
    TrainingContext context(small.job, small.options, group);
    const Feed feed(context, context.timetable.phase_at(0),
                    [&] { return std::string(group.rank() == 1 ? "SIGUSR1" : ""); });
    EXPECT_EQ(context.stop.reason(), "SIGUSR1 on rank 1");
    EXPECT_FALSE(feed.validation().has_value());
  });
}

}  // namespace
}  // namespace lockstep::training
