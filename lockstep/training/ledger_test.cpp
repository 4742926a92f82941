// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/ledger.h"

#include <gtest/gtest.h>

#include "lockstep/run/small_disk.h"

namespace lockstep::training {

TEST(LedgerTest, GroupsShortStepsAndWeighsTheirLossBySamples) {
  const base::TemporaryFolder folder;
  spec::Training training;
  training.global_batch = 10;
  training.epochs = 1;
  const run::Timetable timetable(training, 15);  // two steps: 10 and 5 samples
  std::vector<std::string> said;
  Logger logger;
  logger.say = [&](std::string_view line) { said.emplace_back(line); };
  {
    Ledger ledger({folder.path()}, timetable, objective::make_objective(spec::Job()), logger);
    ledger.step(1, {.loss = 1, .figures = {5}, .samples = 10, .compute_seconds = 0.1}, 0.5, 0.01, 0.2);
    ledger.step(2, {.loss = 4, .figures = {1}, .samples = 5, .compute_seconds = 0.1}, 0.25, 0.01, 0.2);
    ledger.stalled(2, 0.6);
    ledger.saved({.step = 2, .best = true, .bytes = 10, .folder = "c/step-00000002", .seconds = 3}, 0.6, std::nullopt);
    ledger.end_epoch(2);
  }
  const auto history = run::read_journal(folder.path() / "journal.jsonl");
  ASSERT_EQ(history.named("step").size(), 1U);
  const auto step = history.named("step")[0];
  EXPECT_EQ(step.at("steps").as_int(), 2);
  EXPECT_EQ(step.at("step").as_int(), 2);
  EXPECT_DOUBLE_EQ(step.at("loss").as_double(), 2);
  EXPECT_DOUBLE_EQ(step.at("accuracy").as_double(), 0.4);
  EXPECT_DOUBLE_EQ(step.at("lr").as_double(), 0.25);
  ASSERT_EQ(history.named("save").size(), 1U);
  EXPECT_EQ(history.named("save")[0].at("checkpoint").as_string(), "step-00000002");
  EXPECT_DOUBLE_EQ(history.named("save")[0].at("stall").as_double(), 0.6);
  ASSERT_EQ(history.named("epoch").size(), 1U);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("epoch 1  loss 2.0000"), std::string::npos);
  EXPECT_NE(said[0].find("save 60 %"), std::string::npos);  // 0.6 s of 1 s: the save of its last step is its own
}

TEST(LedgerTest, WarnsOfAFirstEpochThatIsWorseThanSayingTheSameOfEverySample) {
  spec::Training training;
  training.global_batch = 1;
  training.epochs = 2;
  const run::Timetable timetable(training, 10);
  spec::Job job;
  job.model.classes = 37;  // log(37) = 3.61
  for (const double loss : {3.7, 5.0}) {
    const base::TemporaryFolder folder;
    std::vector<std::string> said;
    Logger logger;
    logger.say = [&](std::string_view line) { said.emplace_back(line); };
    Ledger ledger({folder.path()}, timetable, objective::make_objective(job), logger);
    for (int64_t step = 1; step <= 20; ++step) {
      ledger.step(step, {.loss = loss, .figures = {0}, .samples = 1}, 0.1, 0, 0.01);
      if (step % 10 == 0) ledger.end_epoch(step);
    }
    int64_t warnings = 0;
    for (const auto& line : said) warnings += line.starts_with("warning: the loss of the first epoch, 5.00") ? 1 : 0;
    EXPECT_EQ(warnings, loss > 4 ? 1 : 0);
    EXPECT_EQ(said.at(1).find("lower training.optimizer.lr (the rate is 0.1 now)") != std::string::npos, loss > 4);
  }
}

TEST(LedgerTest, StepsWithoutAFiniteLossHaveNoMean) {
  const base::TemporaryFolder folder;
  spec::Training training;
  training.global_batch = 10;
  training.epochs = 1;
  const run::Timetable timetable(training, 10);
  Ledger ledger({folder.path()}, timetable, objective::make_objective(spec::Job()), {});
  ledger.step(1, {.loss = 0, .samples = 0}, 0.5, 0, 0.1);
  ledger.end_epoch(1);
  const auto history = run::read_journal(folder.path() / "journal.jsonl");
  for (const char* event : {"step", "epoch"}) {
    ASSERT_EQ(history.named(event).size(), 1U);
    EXPECT_FALSE(history.named(event)[0].contains("loss"));
    EXPECT_FALSE(history.named(event)[0].contains("accuracy"));
  }
}

TEST(LedgerTest, TheTimeLeftIsThatOfThePhaseAtItsOwnPace) {
  const base::TemporaryFolder folder;
  spec::Training training;
  training.global_batch = 10;
  training.phases.resize(2);
  training.phases[0].epochs = 5;
  training.phases[1].epochs = 3;
  const run::Timetable timetable(training, 100);  // 50 steps, then 30
  std::string shown;
  Logger logger;
  logger.show = [&](std::string_view line) { shown = line; };
  Ledger ledger({folder.path()}, timetable, objective::make_objective(spec::Job()), logger);
  ledger.phase(timetable.phases()[0]);
  ledger.step(48, {.loss = 1, .samples = 10}, 0.5, 0, 2);
  EXPECT_NE(shown.find("left in this phase 4"), std::string::npos) << shown;
  ledger.phase(timetable.phases()[1]);
  ledger.step(51, {.loss = 1, .samples = 10}, 0.5, 0, 1);
  EXPECT_NE(shown.find("left in this phase 29"), std::string::npos) << shown;
}

TEST(LedgerTest, TheFirstStepOfAPhaseDoesNotSpoilTheTimeLeft) {
  const base::TemporaryFolder folder;
  spec::Training training;
  training.global_batch = 10;
  training.epochs = 1;
  const run::Timetable timetable(training, 100);
  std::string shown;
  Logger logger;
  logger.show = [&](std::string_view line) { shown = line; };
  Ledger ledger({folder.path()}, timetable, objective::make_objective(spec::Job()), logger);
  ledger.phase(timetable.phases()[0]);
  for (const auto& [step, seconds] : {std::pair(1, 24.), std::pair(2, 6.), std::pair(3, 4.)}) {
    ledger.step(step, {.loss = 1, .samples = 10}, 0.5, 0, seconds);
  }
  EXPECT_NE(shown.find("5.0 s/step  left 35 s"), std::string::npos) << shown;
}

TEST(LedgerTest, AFullDiskIsToldOnceAndStopsNothing) {
  const base::TemporaryFolder folder;
  spec::Training training;
  training.global_batch = 10;
  training.epochs = 1;
  const run::Timetable timetable(training, 100);
  std::vector<std::string> said;
  Logger logger;
  logger.say = [&](std::string_view line) { said.emplace_back(line); };
  Ledger ledger({folder.path()}, timetable, objective::make_objective(spec::Job()), logger);
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

}  // namespace lockstep::training
