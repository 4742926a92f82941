// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/training_context.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/training/small_training.h"

namespace lockstep::training {
namespace {

TEST(TrainingContextTest, RankZeroHoldsTheFolderAndEveryRankTheSameJob) {
  SmallTraining small;
  small.job.model.classes = 3;
  std::string jobs[2];
  comm::run_thread_ranks(2, [&](comm::Group& group) {
    const TrainingContext context(small.job, small.options, group);
    EXPECT_EQ(context.folder != nullptr, group.rank() == 0);
    EXPECT_EQ(context.ledger != nullptr, group.rank() == 0);
    EXPECT_EQ(context.loader_settings().rank, group.rank());
    EXPECT_EQ(context.loader_settings().ranks, 2);
    EXPECT_TRUE(context.loader_settings().validates);
    jobs[group.rank()] = spec::to_json(context.job).dump();
    group.barrier();  // while rank 0 holds it
    EXPECT_TRUE(run::read_holder(small.options.run).has_value());
    group.barrier();
  });
  EXPECT_EQ(jobs[0], jobs[1]);
}

TEST(TrainingContextTest, TheLoaderPassesOverWhatRewindsLeftOut) {
  SmallTraining small;
  const auto group = comm::single_group();
  TrainingContext context(small.job, small.options, *group);
  EXPECT_EQ(context.data_state(), context.timetable.loader_state(0));
  context.state.step = 4;
  context.state.data_shift = 3;
  EXPECT_EQ(context.data_state(), context.timetable.loader_state(7));
}

TEST(TrainingContextTest, RefusesABatchThatTheRanksCannotShare) {
  SmallTraining small;
  small.job.training.global_batch = 1;
  EXPECT_THROW(comm::run_thread_ranks(2, [&](comm::Group& group) { TrainingContext(small.job, small.options, group); }),
               base::Error);
}

}  // namespace
}  // namespace lockstep::training
