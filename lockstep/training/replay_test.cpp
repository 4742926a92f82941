// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/replay.h"

#include <gtest/gtest.h>

#include <memory>

#include "lockstep/base/error.h"
#include "lockstep/model/snapshot.h"
#include "lockstep/training/feed.h"
#include "lockstep/training/small_training.h"
#include "lockstep/training/sync_check.h"

namespace lockstep::training {
namespace {

at::Tensor weights_after_steps(int64_t replay_every) {
  SmallTraining small;
  small.job.training.ema_decay = 0.9;
  small.job.training.replay_every = replay_every;
  const auto group = comm::single_group();
  TrainingContext context(small.job, small.options, *group);
  context.ema = std::make_unique<step::Ema>(0.9, context.network);
  step::Step step = SmallTraining::step_of(context);
  Feed feed(context, context.timetable.phase_at(0), [] { return std::string(); });
  for (; context.state.step < 4; ++context.state.step) run_step(context, step, feed.next(), 0.1, false);
  return fingerprints(model::all_tensors(context.network));
}

TEST(ReplayTest, AStepTakenTwiceIsOneStep) {
  EXPECT_TRUE(weights_after_steps(2).equal(weights_after_steps(0)));
}

TEST(ReplayTest, OtherBitsNameTheirRank) {
  SmallTraining small;
  small.job.training.replay_every = 1;
  std::string heard[2];
  comm::run_thread_ranks(2, [&](comm::Group& group) {
    TrainingContext context(small.job, small.options, group);
    step::Step step = SmallTraining::step_of(context);
    Feed feed(context, context.timetable.phase_at(0), [] { return std::string(); });
    const step::Samples samples = feed.next();
    // A processor that errs: the gradient of the second pass is another one.
    const at::Tensor& weight = context.network.parameters().front().tensor;
    const auto calls = std::make_shared<int>(0);
    weight.register_hook([&group, calls](const at::Tensor& gradient) {
      return group.rank() == 1 && ++*calls == 2 ? gradient + 1 : gradient;
    });
    try {
      run_step(context, step, samples, 0.1, false);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), base::Blame::machine);
      heard[group.rank()] = error.message();
    }
  });
  EXPECT_EQ(heard[0], heard[1]);
  EXPECT_NE(heard[0].find("step 1, computed twice from the same state, gave other bits on rank"), std::string::npos)
      << heard[0];
}

}  // namespace
}  // namespace lockstep::training
