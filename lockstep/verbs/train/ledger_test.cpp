// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/train/ledger.h"

#include <gtest/gtest.h>

#include "lockstep/run/small_disk.h"

namespace lockstep::verbs {

TEST(LedgerTest, GroupsShortStepsAndWeighsTheirLossBySamples) {
  const base::TemporaryFolder folder;
  spec::Training training;
  training.global_batch = 10;
  training.epochs = 1;
  const Timetable timetable(training, 15);  // two steps: 10 and 5 samples
  std::vector<std::string> said;
  Voice voice;
  voice.say = [&](std::string_view line) { said.emplace_back(line); };
  {
    Ledger ledger({folder.path()}, timetable, voice);
    ledger.step(1, {.loss = 1, .correct = 5, .samples = 10, .compute_seconds = 0.1}, 0.5, 0.01, 0.2);
    ledger.step(2, {.loss = 4, .correct = 1, .samples = 5, .compute_seconds = 0.1}, 0.25, 0.01, 0.2);
  }
  const auto history = run::read_journal(folder.path() / "journal.jsonl");
  ASSERT_EQ(history.named("step").size(), 1U);
  const auto step = history.named("step")[0];
  EXPECT_EQ(step.at("steps").as_int(), 2);
  EXPECT_EQ(step.at("step").as_int(), 2);
  EXPECT_DOUBLE_EQ(step.at("loss").as_double(), 2);
  EXPECT_DOUBLE_EQ(step.at("accuracy").as_double(), 0.4);
  EXPECT_DOUBLE_EQ(step.at("lr").as_double(), 0.25);
  ASSERT_EQ(history.named("epoch").size(), 1U);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("epoch 1  loss 2.0000"), std::string::npos);
}

TEST(LedgerTest, AFullDiskIsToldOnceAndStopsNothing) {
  const base::TemporaryFolder folder;
  spec::Training training;
  training.global_batch = 10;
  training.epochs = 1;
  const Timetable timetable(training, 100);
  std::vector<std::string> said;
  Voice voice;
  voice.say = [&](std::string_view line) { said.emplace_back(line); };
  Ledger ledger({folder.path()}, timetable, voice);
  ledger.begin("start", base::Json::object());
  {
    const run::SmallDisk full(std::filesystem::file_size(folder.path() / "journal.jsonl") + 30);
    for (int64_t step = 1; step <= 3; ++step) ledger.step(step, {.loss = 1, .samples = 10}, 0.5, 0, 2);
  }
  ledger.step(4, {.loss = 1, .samples = 10}, 0.5, 0, 2);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("journal.jsonl"), std::string::npos);
  EXPECT_EQ(run::read_journal(folder.path() / "journal.jsonl").named("step").size(), 1U);
}

}  // namespace lockstep::verbs
