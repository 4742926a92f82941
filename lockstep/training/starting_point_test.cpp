// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/starting_point.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/training/saver.h"
#include "lockstep/training/small_training.h"
#include "lockstep/training/sync_check.h"

namespace lockstep::training {
namespace {

// A checkpoint behind `step` steps that were never taken; the sums of its weights.
at::Tensor leave_checkpoint(const SmallTraining& small, int64_t step) {
  const auto group = comm::single_group();
  TrainingContext context(small.job, small.options, *group);
  go_to_start(context, "");
  write_start(context);
  for (const auto& entry : context.network.parameters()) entry.tensor.detach().fill_(static_cast<double>(step));
  context.state.step = step;
  context.state.evaluated = step;
  context.state.scores.best = 0.5;
  Saver(context).save_durably(SmallTraining::step_of(context));
  return fingerprints(model::all_tensors(context.network));
}

TEST(StartingPointTest, ANewRunStartsWithoutACheckpoint) {
  SmallTraining small;
  small.job.training.ema_decay = 0.9;
  const auto group = comm::single_group();
  TrainingContext context(small.job, small.options, *group);
  EXPECT_EQ(find_checkpoint(context), "");
  go_to_start(context, "");
  write_start(context);
  EXPECT_EQ(context.state.step, 0);
  EXPECT_NE(context.ema, nullptr);
  EXPECT_EQ(small.events("start").size(), 1U);
  EXPECT_TRUE(std::filesystem::exists(small.options.run / "job.json"));
}

TEST(StartingPointTest, EveryRankGoesToTheNewestCheckpoint) {
  SmallTraining small;
  leave_checkpoint(small, 3);
  const at::Tensor expected = leave_checkpoint(small, 6);
  comm::run_thread_ranks(2, [&](comm::Group& group) {
    TrainingContext context(small.job, small.options, group);
    go_to_start(context, find_checkpoint(context));
    write_start(context);
    EXPECT_EQ(context.state.step, 6);
    EXPECT_EQ(context.state.scores.best, 0.5);
    EXPECT_EQ(base::Path(context.checkpoint).filename(), "step-00000006");
    EXPECT_TRUE(fingerprints(model::all_tensors(context.network)).equal(expected));
  });
  EXPECT_EQ(small.events("resume").size(), 1U);
  EXPECT_THAT(small.said, testing::Contains("going on after step 6 of 12"));
}

// Whatever else the machine does by now: other threads would give other bits.
TEST(StartingPointTest, AResumeKeepsTheThreadsOfTheRun) {
  SmallTraining small;
  small.job.training.threads = 0;
  small.options.threads = {1, "crowded"};
  leave_checkpoint(small, 3);
  EXPECT_THAT(small.said, testing::Contains("crowded"));
  const auto group = comm::single_group();
  const auto threads_of = [&](const spec::Job& job) {
    TrainingContext context(job, small.options, *group);
    go_to_start(context, find_checkpoint(context));
    write_start(context);
    EXPECT_EQ(at::get_num_threads(), context.state.threads);
    return context.state.threads;
  };
  small.options.threads = {2};
  EXPECT_EQ(threads_of(small.job), 1);
  EXPECT_THAT(small.said, testing::Contains("computing with 1 thread, as the run began"));
  spec::Job stated = small.job;
  stated.training.threads = 2;
  EXPECT_EQ(threads_of(stated), 2);  // the job's own word counts
}

TEST(StartingPointTest, ARewindTakesTheTensorsAndKeepsTheShift) {
  SmallTraining small;
  const at::Tensor expected = leave_checkpoint(small, 3);
  const auto group = comm::single_group();
  TrainingContext context(small.job, small.options, *group);
  go_to_start(context, find_checkpoint(context));
  for (const auto& entry : context.network.parameters()) entry.tensor.detach().fill_(7);
  context.state.step = 5;
  context.state.data_shift = 2;
  restore(context, context.checkpoint, Restore::rewind);
  EXPECT_EQ(context.state.step, 3);
  EXPECT_EQ(context.state.data_shift, 2);
  EXPECT_TRUE(fingerprints(model::all_tensors(context.network)).equal(expected));
}

TEST(StartingPointTest, RefusesTheFolderOfAnotherJobAndDamagedCheckpoints) {
  SmallTraining small;
  leave_checkpoint(small, 3);
  const auto group = comm::single_group();
  const auto complaint_of = [&](const spec::Job& job) -> std::string {
    TrainingContext context(job, small.options, *group);
    try {
      go_to_start(context, find_checkpoint(context));
    } catch (const base::Error& error) {
      return error.message();
    }
    return "";
  };
  spec::Job other = small.job;
  other.name = "other";
  EXPECT_THAT(complaint_of(other), testing::HasSubstr("is the run folder of the job 'small', not of 'other'"));
  other = small.job;
  other.training.seed = 99;
  EXPECT_THAT(complaint_of(other), testing::HasSubstr("seed"));
  base::write_file(small.options.run / "checkpoints" / "step-00000003" / "weights.safetensors", "torn");
  EXPECT_THAT(complaint_of(small.job), testing::HasSubstr("every checkpoint is damaged"));
}

}  // namespace
}  // namespace lockstep::training
