// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/train.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/run/journal.h"
#include "lockstep/training/short_run.h"
#include "lockstep/weights/preprocessing.h"

namespace lockstep::training {
namespace {

void expect_same_bits_after_every_stop(const spec::Job& what, int64_t steps) {
  const base::TemporaryFolder folder;
  const auto straight = train_in(folder.path() / "straight", what);
  EXPECT_TRUE(straight.finished);
  EXPECT_EQ(straight.step, steps);
  for (int64_t stop = 1; stop < steps; ++stop) {
    const auto run = folder.path() / std::to_string(stop);
    const auto first = train_in(run, what, stop);
    EXPECT_FALSE(first.finished);
    EXPECT_EQ(first.step, stop);
    const auto second = train_in(run, what);
    EXPECT_EQ(second.resumed_at, stop);
    EXPECT_EQ(second.weights_sha256, straight.weights_sha256) << "stopped after step " << stop;
    EXPECT_EQ(second.evaluation, straight.evaluation);
  }
}

TEST(TrainTest, AStopAfterAnyStepChangesNoBit) {
  expect_same_bits_after_every_stop(short_job(), 8);
}

TEST(TrainTest, AStopChangesNoBitWithAdamwEmaMixupDropoutAndBfloat) {
  auto what = short_job();
  what.training.optimizer.name = spec::OptimizerName::adamw;
  what.training.optimizer.lr = 1e-3;
  what.training.ema_decay = 0.9;
  what.training.mixup = 0.4;
  what.training.precision = spec::Precision::bf16;
  what.model.dropout = 0.2;
  what.training.epochs = 1;
  expect_same_bits_after_every_stop(what, 4);
}

TEST(TrainTest, AStopChangesNoBitWhereRareClassesAreDrawnMoreOften) {
  auto what = short_job();
  what.data.balance = 1;
  expect_same_bits_after_every_stop(what, 8);
}

TEST(TrainTest, AStopChangesNoBitAcrossPhasesWithCachedFeatures) {
  auto what = short_job();
  what.training.epochs = 0;
  what.training.phases = {{.epochs = 1, .train_from = "head", .lr_scale = 1, .cache_features = true},
                          {.epochs = 1, .train_from = "block4", .lr_scale = 0.1, .cache_features = false},
                          {.epochs = 1, .train_from = "head", .lr_scale = 0.1, .cache_features = true}};
  // A wish to stop is heard while features are computed too, so it may come before the first step.
  const base::TemporaryFolder folder;
  const auto straight = train_in(folder.path() / "straight", what);
  int64_t before_a_phase = 0;
  for (int64_t stop = 1;; stop += 3) {
    const auto run = folder.path() / std::to_string(stop);
    const auto group = comm::single_group();
    TrainOptions options;
    options.run = run;
    int64_t asked = 0;
    options.stop = [&] { return std::string(++asked >= stop ? "test" : ""); };
    const auto first = train(what, options, *group);
    if (first.finished) break;
    before_a_phase += first.step == 0 || first.step == 8 ? 1 : 0;
    const auto second = train_in(run, what);
    EXPECT_EQ(second.resumed_at, first.step);
    EXPECT_EQ(second.weights_sha256, straight.weights_sha256) << "asked to stop from the " << stop << "th time on";
  }
  EXPECT_GE(before_a_phase, 3);  // four batches of training and of validation samples, before two of the phases
}

// A rate this small gets no better: the first evaluation is the best, the third ends the run.
spec::Job impatient() {
  auto what = short_job();
  what.training.epochs = 6;
  what.training.optimizer.lr = 1e-9;
  what.training.early_stop.patience = 2;
  what.training.early_stop.min_delta = 0.001;
  return what;
}

TEST(TrainTest, EndsEarlyWhenValidationGetsNoBetterAndAStopChangesNoBitOfIt) {
  const base::TemporaryFolder folder;
  const auto straight = train_in(folder.path() / "straight", impatient());
  EXPECT_TRUE(straight.finished);
  EXPECT_EQ(straight.step, 12);
  EXPECT_EQ(straight.total_steps, 24);
  const auto history = run::read_journal(folder.path() / "straight" / "journal.jsonl");
  EXPECT_EQ(history.named("early_stop").size(), 1U);
  EXPECT_EQ(history.named("end").size(), 1U);
  for (const int64_t stop : {7, 8, 11}) {  // 8: before the evaluation that is due there
    const auto run = folder.path() / std::to_string(stop);
    EXPECT_FALSE(train_in(run, impatient(), stop).finished);
    const auto second = train_in(run, impatient());
    EXPECT_EQ(second.step, 12) << stop;
    EXPECT_EQ(second.weights_sha256, straight.weights_sha256) << stop;
    EXPECT_EQ(second.state_sha256, straight.state_sha256) << stop;
  }
  const auto again = train_in(folder.path() / "straight", impatient());
  EXPECT_EQ(again.resumed_at, 12);
  EXPECT_EQ(again.step, 12);
  auto patient = impatient();
  patient.training.early_stop = {};
  EXPECT_EQ(train_in(folder.path() / "straight", patient).step, 24);
}

TEST(TrainTest, AStopChangesNoBitWithMirroredFeaturesAndLayerDecay) {
  auto what = short_job();
  what.training.epochs = 0;
  what.evaluation.views = spec::Views::flip;
  what.training.optimizer.layer_decay = 0.5;
  what.training.phases = {{.epochs = 2, .train_from = "head", .cache_features = true, .cache_flips = true},
                          {.epochs = 1, .train_from = "", .lr_scale = 0.1}};
  const base::TemporaryFolder folder;
  const auto straight = train_in(folder.path() / "straight", what);
  const auto first = train_in(folder.path() / "run", what, 6);
  EXPECT_FALSE(first.finished);
  EXPECT_EQ(train_in(folder.path() / "run", what).weights_sha256, straight.weights_sha256);
  auto unmirrored = what;
  unmirrored.training.phases[0].cache_flips = false;
  EXPECT_NE(train_in(folder.path() / "other", unmirrored).weights_sha256, straight.weights_sha256);
}

TEST(TrainTest, TheWeightsSayHowTheirImagesAreShown) {
  const base::TemporaryFolder folder;
  auto what = short_job();
  what.data.mean = {0.25, 0.5, 0.75};
  train_in(folder.path() / "run", what);
  const auto own = weights::read_preprocessing(folder.path() / "run/weights.safetensors");
  ASSERT_TRUE(own);
  EXPECT_EQ(*own, weights::preprocessing_of(what.data));
  EXPECT_EQ(weights::read_preprocessing(folder.path() / "run/checkpoints/step-00000008"), own);
}

// A kill between the last save and the end of the journal: the run finds itself done.
TEST(TrainTest, TellsTheStateOfARunThatWasSavedToItsEnd) {
  auto what = short_job();
  what.training.optimizer.name = spec::OptimizerName::adamw;
  what.training.ema_decay = 0.9;
  const base::TemporaryFolder folder;
  const auto first = train_in(folder.path() / "run", what);
  const auto second = train_in(folder.path() / "run", what);
  EXPECT_EQ(second.resumed_at, second.total_steps);
  EXPECT_FALSE(first.state_sha256.empty());
  EXPECT_EQ(second.state_sha256, first.state_sha256);
}

TEST(TrainTest, KeepsAJournalOfOneHistory) {
  const base::TemporaryFolder folder;
  train_in(folder.path() / "run", short_job(), 3);
  train_in(folder.path() / "run", short_job());
  const auto history = run::read_journal(folder.path() / "run" / "journal.jsonl");
  EXPECT_EQ(history.named("start").size(), 1U);
  EXPECT_EQ(history.named("stop").size(), 1U);
  EXPECT_EQ(history.named("resume").size(), 1U);
  EXPECT_EQ(history.named("epoch").size(), 2U);
  EXPECT_EQ(history.named("evaluate").size(), 2U);
  EXPECT_EQ(history.named("end").size(), 1U);
  int64_t steps = 0;
  for (const auto& event : history.named("step")) steps += event.at("steps").as_int();
  EXPECT_EQ(steps, 8);
}

TEST(TrainTest, ANearWalltimeStopsInTime) {
  const base::TemporaryFolder folder;
  const auto group = comm::single_group();
  TrainOptions options;
  options.run = folder.path() / "run";
  options.seconds_left = 8;  // two saves are taken to need 2 at first, and some margin; the rest is for a busy machine
  auto what = short_job();
  what.training.epochs = 100000;
  what.checkpoint.every_epochs = 1000;
  const auto result = train(what, options, *group);
  EXPECT_FALSE(result.finished);
  EXPECT_EQ(result.stop_reason, "walltime");
  EXPECT_GE(result.step, 1);
  EXPECT_LT(result.seconds - result.save_seconds, 8);  // how long the save takes is the disk's, which may be busy
}

TEST(TrainTest, AWalltimeTooShortForOneStepIsRefusedBeforeIt) {
  const base::TemporaryFolder folder;
  const auto group = comm::single_group();
  TrainOptions options;
  options.run = folder.path() / "run";
  options.seconds_left = -2;
  options.seconds_passed = 62;  // before this process
  try {
    train(short_job(), options, *group);
    FAIL() << "began";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_NE(error.message().find("the walltime is too short: 1:00 from the start of lockstep, 1:0"),
              std::string::npos)
        << error.message();
  }
  EXPECT_TRUE(run::read_journal(options.run / "journal.jsonl").named("step").empty());
}

TEST(TrainTest, ARestartLateInAJobStopsInOrder) {
  const base::TemporaryFolder folder;
  const auto groups = comm::thread_groups(2);
  const auto sit = [&](comm::Group& group) {
    TrainOptions options;
    options.run = folder.path() / "run";
    if (group.rank() == 0) options.seconds_left = 1;
    options.restarted = true;
    auto what = short_job();
    what.data.samples = 24;  // no batch of 2: batch norm has nothing to go by on a rank's one sample
    const auto result = train(what, options, group);
    EXPECT_FALSE(result.finished);
    EXPECT_EQ(result.stop_reason, "walltime");
    EXPECT_EQ(result.step, 0);
  };
  {
    std::jthread other([&] { sit(*groups[1]); });
    sit(*groups[0]);
  }
  EXPECT_EQ(run::read_journal(folder.path() / "run" / "journal.jsonl").named("stop").size(), 1u);
}

TEST(TrainTest, AFirstEvaluationThatTheWalltimeMayCutComesAfterASave) {
  for (const double seconds_left : {4.0, 1e9}) {
    const base::TemporaryFolder folder;
    const auto group = comm::single_group();
    auto what = short_job();
    what.data.samples = 2400;   // as many to validate on: one at a time they would take long
    what.data.image_size = 32;  // batch norm sees more than one value of one sample
    what.training.global_batch = 1;
    what.training.epochs = 0;
    what.training.steps = 1;
    what.evaluation.batch = 400;
    TrainOptions options;
    options.run = folder.path() / "run";
    options.seconds_left = seconds_left;
    train(what, options, *group);
    const auto history = run::read_journal(folder.path() / "run" / "journal.jsonl");
    std::vector<std::string> order;
    for (const auto& event : history.events) {
      const std::string& name = event.at("event").as_string();
      if (name == "save" || name == "evaluate") order.push_back(name);
    }
    ASSERT_FALSE(order.empty());
    EXPECT_EQ(order[0], seconds_left < 100 ? "save" : "evaluate");
  }
}

TEST(TrainTest, RefusesToGoOnWithAnotherJobAndSaysWhatDiffers) {
  const base::TemporaryFolder folder;
  train_in(folder.path() / "run", short_job(), 2);
  const auto complaint = [&](const spec::Job& other) {
    try {
      train_in(folder.path() / "run", other);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), base::Blame::user);
      return error.message();
    }
    return std::string("accepted");
  };
  auto other = short_job();
  other.training.seed = 9;
  EXPECT_NE(complaint(other).find("training.seed was 1, now 9"), std::string::npos);
  other = short_job();
  other.data.samples = 30;
  EXPECT_NE(complaint(other).find("data (names, labels"), std::string::npos);
  other = short_job();
  other.model.width = 8;
  EXPECT_NE(complaint(other).find("model.width was 4, now 8"), std::string::npos);
}

TEST(TrainTest, AReplayedStepIsTheSameStep) {
  const base::TemporaryFolder folder;
  auto what = short_job();
  what.training.optimizer.name = spec::OptimizerName::adamw;
  what.training.optimizer.lr = 1e-3;
  what.training.ema_decay = 0.9;
  const auto plain = train_in(folder.path() / "plain", what);
  what.training.replay_every = 2;
  EXPECT_EQ(train_in(folder.path() / "replayed", what).weights_sha256, plain.weights_sha256);
}

TEST(TrainTest, TheDistanceOfSavesChangesNoBitAndTheStallIsTold) {
  const base::TemporaryFolder folder;
  auto what = short_job();
  const auto each_epoch = train_in(folder.path() / "epochs", what);
  what.checkpoint.every_epochs = 0;  // by the clock: this run ends before a minute is over
  const auto by_clock = train_in(folder.path() / "clock", what);
  EXPECT_EQ(by_clock.weights_sha256, each_epoch.weights_sha256);
  EXPECT_GT(each_epoch.stall_seconds, 0);
  EXPECT_LT(each_epoch.stall_share, 1);
  EXPECT_GT(each_epoch.save_seconds, 0);
  const auto saves = run::read_journal(folder.path() / "epochs" / "journal.jsonl").named("save");
  EXPECT_EQ(static_cast<int64_t>(saves.size()), each_epoch.saves);
  double stall = 0;
  for (const auto& save : saves) stall += save.at("stall").as_double();
  EXPECT_NEAR(stall, each_epoch.stall_seconds, 1e-9);
}

TEST(TrainTest, ALengthenedRunSetsItsOldResultAside) {
  const base::TemporaryFolder folder;
  const auto run = folder.path() / "run";
  train_in(run, short_job());
  const std::string old = base::read_file(run / "weights.safetensors");
  auto longer = short_job();
  longer.training.epochs = 3;
  EXPECT_FALSE(train_in(run, longer, 1).finished);
  EXPECT_FALSE(std::filesystem::exists(run / "weights.safetensors"));
  EXPECT_EQ(base::read_file(run / "weights.previous.safetensors"), old);
  EXPECT_TRUE(train_in(run, longer).finished);
  EXPECT_TRUE(std::filesystem::exists(run / "weights.safetensors"));
}

TEST(TrainTest, AnyNumberOfRanksHasTheWeightsAndTheValidationLossOfOneToTheLastBit) {
  auto what = short_job();
  what.data.image_size = 32;  // 2 x 2 at the end: a slice of one sample has values that differ
  what.training.virtual_ranks = 4;
  const base::TemporaryFolder folder;
  const auto end_on = [&](int64_t ranks) {
    TrainResult end;
    comm::run_thread_ranks(ranks, [&](comm::Group& group) {
      TrainOptions options;
      options.run = folder.path() / std::to_string(ranks);
      const auto mine = train(what, options, group);
      if (group.rank() == 0) end = mine;
    });
    return end;
  };
  const auto one = end_on(1);
  ASSERT_TRUE(one.evaluation && one.evaluation->figure("loss"));
  for (const int64_t ranks : {2, 3}) {  // of 4 batches, the last one of 2 samples
    const auto end = end_on(ranks);
    EXPECT_EQ(end.state_sha256, one.state_sha256) << ranks << " ranks";
    EXPECT_EQ(end.evaluation, one.evaluation) << ranks << " ranks";
  }
}

TEST(TrainTest, AFinishedRunStaysAsItIs) {
  const base::TemporaryFolder folder;
  const auto first = train_in(folder.path() / "run", short_job());
  const auto again = train_in(folder.path() / "run", short_job());
  EXPECT_TRUE(again.finished);
  EXPECT_EQ(again.weights_sha256, first.weights_sha256);
}

}  // namespace
}  // namespace lockstep::training
