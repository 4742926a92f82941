// SPDX-License-Identifier: Apache-2.0
// Whole runs in which something goes wrong: losses, disks, another process.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/run/faulty_disk.h"
#include "lockstep/run/journal.h"
#include "lockstep/run/small_disk.h"
#include "lockstep/training/short_run.h"
#include "lockstep/training/train.h"

namespace lockstep::training {
namespace {

std::vector<int64_t> field_of(const run::History& history, std::string_view event, std::string_view key) {
  std::vector<int64_t> values;
  for (const auto& line : history.events) {
    if (line.at("event").as_string() == event) values.push_back(line.at(key).as_int());
  }
  return values;
}

TEST(TrainFaultsTest, ALossThatIsNeverFiniteEndsTheRunWithAdvice) {
  const base::TemporaryFolder folder;
  auto what = short_job();
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

// The second phase makes every loss infinite: going back helps a run, but never this one.
TEST(TrainFaultsTest, StepsThatAreNotFiniteSendItBackToTheLastCheckpointAndThenToEarlierOnes) {
  const base::TemporaryFolder folder;
  auto what = short_job();
  what.training.epochs = 0;
  what.training.phases.resize(2);
  what.training.phases[0].epochs = what.training.phases[1].epochs = 2;
  what.training.phases[1].lr_scale = 1e30;
  what.training.max_rewinds = 2;
  what.checkpoint.keep = 5;
  const auto run = folder.path() / "run";
  try {
    train_in(run, what);
    FAIL() << "finished";
  } catch (const base::Error& error) {
    EXPECT_NE(error.message().find("no finite loss in 3 steps in a row"), std::string::npos) << error.message();
  }
  const auto history = run::read_journal(run / "journal.jsonl");
  EXPECT_EQ(field_of(history, "rewind", "step"), (std::vector<int64_t>{8, 4}));
  const auto from = field_of(history, "rewind", "from");
  ASSERT_EQ(from.size(), 2U);
  EXPECT_GE(from[0], 11);
  EXPECT_EQ(from[0], from[1]);
  EXPECT_EQ(field_of(history, "rewind", "data_shift"), (std::vector<int64_t>{from[0] - 8, from[0] - 8 + from[0] - 4}));
}

// With a factor this close to 1 some batches of noise count as spikes; the others carry the run to its end.
TEST(TrainFaultsTest, ASpikeLeavesItsDataOutAndAStopChangesNoBitOfThat) {
  auto what = short_job();
  what.training.epochs = 12;
  what.training.spike_factor = 1.3;
  what.training.max_rewinds = 50;
  what.checkpoint.keep = 20;
  const base::TemporaryFolder folder;
  const auto straight = train_in(folder.path() / "straight", what);
  EXPECT_TRUE(straight.finished);
  EXPECT_GE(straight.rewinds, 1);
  const auto history = run::read_journal(folder.path() / "straight" / "journal.jsonl");
  const auto rewinds = static_cast<size_t>(straight.rewinds);
  EXPECT_EQ(field_of(history, "rewind", "step").size(), rewinds);
  for (const int64_t stop : {3, 18, 29}) {
    const auto run = folder.path() / std::to_string(stop);
    EXPECT_FALSE(train_in(run, what, stop).finished);
    EXPECT_EQ(train_in(run, what).weights_sha256, straight.weights_sha256) << "stopped after step " << stop;
  }
}

// Each act of the saves goes wrong in turn, once or for good, full or broken: no good checkpoint is lost and training
// goes on. (tests/faults/kill_saves.py tries every way at every call of the program itself.)
TEST(TrainFaultsTest, AFaultAtAnyActOfASaveCostsNoBit) {
  auto what = short_job();
  what.data.validate.clear();
  what.data.samples = what.training.global_batch;
  what.model.name = "mlp";
  what.training.epochs = 3;  // three steps and saves
  const base::TemporaryFolder folder;
  const auto straight = train_in(folder.path() / "straight", what);
  const auto group = comm::single_group();
  int64_t failed = 0, refused = 0;
  bool reached = true;
  for (int64_t at = 0; reached; ++at) {
    TrainOptions options;
    options.run = folder.path() / std::to_string(at);
    const auto fault = at % 2 == 0 ? run::FaultyDisk::Fault::fail : run::FaultyDisk::Fault::persist;
    const auto disk = std::make_shared<run::FaultyDisk>(fault, at, at / 2 % 2 == 0 ? ENOSPC : EIO);
    options.disk = disk;
    std::string sha256;
    try {
      sha256 = train(what, options, *group).weights_sha256;
    } catch (const base::Error& error) {  // the last save: there is no later one to try
      EXPECT_EQ(error.blame(), base::Blame::machine);
      sha256 = train_in(options.run, what).weights_sha256;
      ++refused;
    }
    EXPECT_EQ(sha256, straight.weights_sha256) << "a fault at act " << at;
    const auto history = run::read_journal(options.run / "journal.jsonl");
    for (const auto& event : history.events) failed += event.at("event").as_string() == "save_failed" ? 1 : 0;
    reached = disk->acts() > at;
  }
  EXPECT_GT(failed, 20);
  EXPECT_GT(refused, 20);
}

TEST(TrainFaultsTest, AFullDiskEndsOnlyTheLastSaveAndTheSameCommandGoesOn) {
  const base::TemporaryFolder folder;
  const auto straight = train_in(folder.path() / "straight", short_job());
  const auto run = folder.path() / "run";
  train_in(run, short_job(), 2);  // a good checkpoint
  try {
    // Room for what the journal tells, about 3,000 bytes; the optimizer's state has 27 kB.
    const run::SmallDisk full(std::filesystem::file_size(run / "journal.jsonl") + 8000);
    train_in(run, short_job());
    ADD_FAILURE() << "saved";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::machine);
  }
  const auto history = run::read_journal(run / "journal.jsonl");
  EXPECT_EQ(history.named("save_failed").size(), 1U);  // after the first epoch
  EXPECT_EQ(history.skipped, 0);
  EXPECT_FALSE(std::filesystem::exists(run / "weights.safetensors"));
  const auto again = train_in(run, short_job());
  EXPECT_EQ(again.resumed_at, 2);
  EXPECT_EQ(again.weights_sha256, straight.weights_sha256);
}

TEST(TrainFaultsTest, WithoutRoomForTheLastCheckpointTheWeightsAreKept) {
  const base::TemporaryFolder folder;
  const auto straight = train_in(folder.path() / "straight", short_job());
  const auto group = comm::single_group();
  auto what = short_job();
  what.checkpoint.every_epochs = 1000;  // the end alone is saved
  TrainOptions options;
  options.run = folder.path() / "run";
  options.disk = std::make_shared<run::FaultyDisk>(run::FaultyDisk::Fault::persist, 3);
  EXPECT_THROW(train(what, options, *group), base::Error);
  EXPECT_EQ(base::read_file(options.run / "weights.safetensors"),
            base::read_file(folder.path() / "straight" / "weights.safetensors"));
}

TEST(TrainFaultsTest, ABestResultThatCouldNotBeSavedIsNotTheBest) {
  const base::TemporaryFolder folder;
  const auto group = comm::single_group();
  auto what = short_job();
  what.training.optimizer.lr = 1e-12;   // every evaluation gives the same
  what.checkpoint.every_epochs = 1000;  // the best is saved, and the end
  what.training.epochs = 3;
  TrainOptions options;
  options.run = folder.path() / "run";
  options.disk = std::make_shared<run::FaultyDisk>(run::FaultyDisk::Fault::fail, 3);  // in the first save, no later one
  train(what, options, *group);
  const auto history = run::read_journal(options.run / "journal.jsonl");
  EXPECT_EQ(history.named("save_failed").size(), 1U);
  ASSERT_EQ(history.named("save").size(), 2U);
  EXPECT_EQ(history.named("save")[0].at("step").as_int(), 8);
  EXPECT_TRUE(history.named("save")[0].at("best").as_bool());
}

TEST(TrainFaultsTest, ATakeoverEndsTheSessionAtTheNextSave) {
  const base::TemporaryFolder folder;
  const auto group = comm::single_group();
  TrainOptions options;
  options.run = folder.path() / "run";
  options.stop = [&] {
    base::write_file(options.run / "lock", R"({"host": "other", "pid": 1})");
    return std::string();
  };
  try {
    train(short_job(), options, *group);
    FAIL() << "went on";
  } catch (const base::Error& error) {
    EXPECT_NE(error.message().find("took over"), std::string::npos);
  }
  EXPECT_EQ(run::read_journal(options.run / "journal.jsonl").named("evaluate").size(), 1U);
}

}  // namespace
}  // namespace lockstep::training
