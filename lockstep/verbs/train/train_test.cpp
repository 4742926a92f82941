// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/train/train.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "lockstep/base/error.h"
#include "lockstep/run/journal.h"
#include "lockstep/run/small_disk.h"

namespace lockstep::verbs {
namespace {

spec::Job job() {
  spec::Job result;
  result.name = "test";
  result.data.train = "synthetic";
  result.data.validate = "synthetic";
  result.data.samples = 26;
  result.data.image_size = 16;
  result.data.threads = 1;
  result.model.name = "smallcnn";
  result.model.classes = 3;
  result.model.width = 4;
  result.training.global_batch = 8;  // 4 steps an epoch, the last of 2 samples
  result.training.epochs = 2;
  result.training.threads = 1;
  result.training.optimizer.lr = 0.05;
  return result;
}

TrainResult train_in(const base::Path& folder, const spec::Job& what, int64_t stop_after = -1) {
  const auto group = comm::single_group();
  TrainOptions options;
  options.run = folder;
  int64_t asked = 0;
  options.stop = [&] { return ++asked == stop_after ? std::string("test") : std::string(); };
  return train(what, options, *group);
}

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
    EXPECT_EQ(second.top1, straight.top1);
  }
}

TEST(TrainTest, AStopAfterAnyStepChangesNoBit) {
  expect_same_bits_after_every_stop(job(), 8);
}

TEST(TrainTest, AStopChangesNoBitWithAdamwEmaMixupDropoutAndBfloat) {
  auto what = job();
  what.training.optimizer.name = spec::OptimizerName::adamw;
  what.training.optimizer.lr = 1e-3;
  what.training.ema_decay = 0.9;
  what.training.mixup = 0.4;
  what.training.precision = spec::Precision::bf16;
  what.model.dropout = 0.2;
  what.training.epochs = 1;
  expect_same_bits_after_every_stop(what, 4);
}

TEST(TrainTest, AStopChangesNoBitAcrossPhasesWithCachedFeatures) {
  auto what = job();
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
    const auto first = train_in(run, what, stop);
    if (first.finished) break;
    before_a_phase += first.step == 0 || first.step == 8 ? 1 : 0;
    const auto second = train_in(run, what);
    EXPECT_EQ(second.resumed_at, first.step);
    EXPECT_EQ(second.weights_sha256, straight.weights_sha256) << "asked to stop for the " << stop << "th time";
  }
  EXPECT_GE(before_a_phase, 3);  // four batches of training and of validation samples, before two of the phases
}

TEST(TrainTest, KeepsAJournalOfOneHistory) {
  const base::TemporaryFolder folder;
  train_in(folder.path() / "run", job(), 3);
  train_in(folder.path() / "run", job());
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
  options.seconds_left = 1;  // less than two saves are taken to need at first
  const auto result = train(job(), options, *group);
  EXPECT_FALSE(result.finished);
  EXPECT_EQ(result.stop_reason, "walltime");
  EXPECT_EQ(result.step, 1);
}

TEST(TrainTest, AFirstEvaluationThatTheWalltimeMayCutComesAfterASave) {
  for (const double seconds_left : {4.0, 1e9}) {
    const base::TemporaryFolder folder;
    const auto group = comm::single_group();
    auto what = job();
    what.data.samples = 2400;  // as many to validate on: one at a time they would take long
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
  train_in(folder.path() / "run", job(), 2);
  const auto complaint = [&](const spec::Job& other) {
    try {
      train_in(folder.path() / "run", other);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), base::Blame::user);
      return error.message();
    }
    return std::string("accepted");
  };
  auto other = job();
  other.training.seed = 9;
  EXPECT_NE(complaint(other).find("training.seed was 1, now 9"), std::string::npos);
  other = job();
  other.data.samples = 30;
  EXPECT_NE(complaint(other).find("data (names and labels"), std::string::npos);
  other = job();
  other.model.width = 8;
  EXPECT_NE(complaint(other).find("model.width was 4, now 8"), std::string::npos);
}

TEST(TrainTest, ALossThatIsNeverFiniteEndsTheRunWithAdvice) {
  const base::TemporaryFolder folder;
  auto what = job();
  what.training.optimizer.lr = 1e30;
  try {
    train_in(folder.path() / "run", what);
    FAIL() << "finished";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_NE(error.message().find("3 steps in a row"), std::string::npos);
    EXPECT_NE(error.message().find("training.optimizer.lr"), std::string::npos);
  }
}

TEST(TrainTest, ALengthenedRunSetsItsOldResultAside) {
  const base::TemporaryFolder folder;
  const auto run = folder.path() / "run";
  train_in(run, job());
  const std::string old = base::read_file(run / "weights.safetensors");
  auto longer = job();
  longer.training.epochs = 3;
  EXPECT_FALSE(train_in(run, longer, 1).finished);
  EXPECT_FALSE(std::filesystem::exists(run / "weights.safetensors"));
  EXPECT_EQ(base::read_file(run / "weights.previous.safetensors"), old);
  EXPECT_TRUE(train_in(run, longer).finished);
  EXPECT_TRUE(std::filesystem::exists(run / "weights.safetensors"));
}

TEST(TrainTest, AFullDiskEndsOnlyTheLastSaveAndTheSameCommandGoesOn) {
  const base::TemporaryFolder folder;
  const auto straight = train_in(folder.path() / "straight", job());
  const auto run = folder.path() / "run";
  train_in(run, job(), 2);  // a good checkpoint
  try {
    const run::SmallDisk full(std::filesystem::file_size(run / "journal.jsonl") + 3000);  // room for `resume`
    train_in(run, job());
    ADD_FAILURE() << "saved";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::machine);
  }
  const auto history = run::read_journal(run / "journal.jsonl");
  EXPECT_EQ(history.named("save_failed").size(), 1U);  // after the first epoch
  EXPECT_EQ(history.skipped, 0);
  EXPECT_FALSE(std::filesystem::exists(run / "weights.safetensors"));
  const auto again = train_in(run, job());
  EXPECT_EQ(again.resumed_at, 2);
  EXPECT_EQ(again.weights_sha256, straight.weights_sha256);
}

TEST(TrainTest, ABestResultThatCouldNotBeSavedIsNotTheBest) {
  const base::TemporaryFolder folder;
  const auto group = comm::single_group();
  auto what = job();
  what.training.optimizer.lr = 1e-12;   // every evaluation gives the same
  what.checkpoint.every_epochs = 1000;  // the best is saved, and the end
  what.training.epochs = 3;
  TrainOptions options;
  options.run = folder.path() / "run";
  auto full = std::make_unique<run::SmallDisk>(8000);
  int64_t asked = 0;
  options.stop = [&] {
    if (++asked == 5) full.reset();  // room again in the second epoch
    return std::string();
  };
  train(what, options, *group);
  const auto history = run::read_journal(options.run / "journal.jsonl");
  EXPECT_EQ(history.named("save_failed").size(), 1U);
  ASSERT_EQ(history.named("save").size(), 2U);
  EXPECT_EQ(history.named("save")[0].at("step").as_int(), 8);
  EXPECT_TRUE(history.named("save")[0].at("best").as_bool());
}

TEST(TrainTest, ATakeoverEndsTheSittingAtTheNextSave) {
  const base::TemporaryFolder folder;
  const auto group = comm::single_group();
  TrainOptions options;
  options.run = folder.path() / "run";
  options.stop = [&] {
    base::write_file(options.run / "lock", R"({"host": "other", "pid": 1})");
    return std::string();
  };
  try {
    train(job(), options, *group);
    FAIL() << "went on";
  } catch (const base::Error& error) {
    EXPECT_NE(error.message().find("took over"), std::string::npos);
  }
  EXPECT_EQ(run::read_journal(options.run / "journal.jsonl").named("evaluate").size(), 1U);
}

TEST(TrainTest, AFinishedRunStaysAsItIs) {
  const base::TemporaryFolder folder;
  const auto first = train_in(folder.path() / "run", job());
  const auto again = train_in(folder.path() / "run", job());
  EXPECT_TRUE(again.finished);
  EXPECT_EQ(again.weights_sha256, first.weights_sha256);
}

}  // namespace
}  // namespace lockstep::verbs
