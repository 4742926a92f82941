// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/saver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/forecast/limits.h"
#include "lockstep/run/faulty_disk.h"
#include "lockstep/run/journal.h"
#include "lockstep/training/small_training.h"
#include "lockstep/training/train.h"

namespace lockstep::training {
namespace {

spec::Job saving_job() {
  spec::Job job;
  job.name = "saved";
  job.data.train = "synthetic";
  job.data.samples = 26;
  job.data.image_size = 8;
  job.data.threads = job.training.threads = 1;
  job.model.name = "mlp";
  job.model.classes = 3;
  job.model.width = 4;
  job.training.global_batch = 8;  // 4 steps an epoch
  job.training.epochs = 5.75;
  job.training.optimizer.lr = 0.6;
  job.checkpoint.milestone_epochs = 0.75;
  return job;
}

run::History history_of(const spec::Job& job, const Logger& logger = {}) {
  const base::TemporaryFolder folder;
  const auto group = comm::single_group();
  TrainOptions options;
  options.run = folder.path() / "run";
  options.logger = logger;
  train(job, options, *group);
  return run::read_journal(options.run / "journal.jsonl");
}

forecast::Length planned(const spec::Job& job) {
  const int64_t validation = job.data.validate.empty() ? 0 : job.data.samples;
  const forecast::Pace pace{.step = 1e-3, .first_save = 60, .save_interval = 60};
  return forecast::estimate_length(forecast::run_amount_of(job, job.data.samples, validation), pace).value();
}

// Throws what is no error of ours once, within the first save.
class OddDisk : public run::FaultyDisk {
 public:
  OddDisk() : FaultyDisk(Fault::none, 0) {}
  void sync_folder(const base::Path& path) override {
    const bool draft = path.filename().string().starts_with(".saving-");
    if (draft && !std::exchange(thrown_, true)) {
      throw std::filesystem::filesystem_error("status", path, std::make_error_code(std::errc::io_error));
    }
    FaultyDisk::sync_folder(path);
  }

 private:
  bool thrown_ = false;
};

TEST(SaverTest, WhateverASaveFailsWithIsToldAndTrainingGoesOn) {
  const base::TemporaryFolder folder;
  TrainOptions options;
  options.run = folder.path() / "run";
  options.disk = std::make_shared<OddDisk>();
  EXPECT_TRUE(train(saving_job(), options, *comm::single_group()).finished);
  const auto history = run::read_journal(options.run / "journal.jsonl");
  ASSERT_EQ(history.named("save_failed").size(), 1U);
  EXPECT_NE(history.named("save_failed")[0].at("message").as_string().find("Input/output error"), std::string::npos);
  for (const auto& item : std::filesystem::directory_iterator(options.run / "checkpoints")) {
    EXPECT_FALSE(item.path().filename().string().starts_with(".saving-"));
  }
}

TEST(SaverTest, ThePlanCountsItsSaves) {
  for (const double every : {0.0, 0.5, 1.0, 2.0}) {
    auto job = saving_job();
    job.checkpoint.every_epochs = every;
    const auto length = planned(job);
    EXPECT_EQ(static_cast<int64_t>(history_of(job).named("save").size()), length.num_saves) << "every " << every;
    EXPECT_EQ(length.most_saves, length.num_saves);
  }
}

TEST(SaverTest, ThePlanCountsOneMoreForEachEvaluationThatMayBeTheBest) {
  for (const double every : {0.0, 1.0}) {
    auto job = saving_job();
    job.data.validate = "synthetic";
    job.checkpoint.every_epochs = every;
    job.evaluation.every_epochs = 0.5;
    const auto history = history_of(job);
    const auto saves = history.named("save");
    const auto evaluations = history.named("evaluate");
    const auto length = planned(job);
    EXPECT_EQ(static_cast<int64_t>(evaluations.size()), length.num_evaluations);
    const int64_t not_saved = std::count_if(evaluations.begin(), evaluations.end(), [&](const base::Json& one) {
      return std::none_of(saves.begin(), saves.end(),
                          [&](const base::Json& save) { return save.at("step").as_int() == one.at("step").as_int(); });
    });
    EXPECT_GT(not_saved, 0);
    EXPECT_EQ(static_cast<int64_t>(saves.size()) + not_saved, length.most_saves);
    EXPECT_LT(length.num_saves, length.most_saves);
  }
}

TEST(SaverTest, SaysWhatItsCheckpointsTakeOfTheDisk) {
  for (const double momentum : {0.0, 0.9}) {
    auto job = saving_job();
    job.checkpoint.milestone_epochs = 1.5;  // 6 steps of 23
    job.training.optimizer.momentum = momentum;
    std::vector<std::string> said;
    const auto history = history_of(job, {.say = [&](std::string_view line) { said.emplace_back(line); }});
    const int64_t weights = 4 * history.named("start")[0].at("parameters").as_int();
    const auto bytes = static_cast<double>(momentum > 0 ? 2 * weights + 8 : weights + 8);  // and the count of steps
    const std::string start = base::text("checkpoints: ", base::format_bytes(bytes), " each, up to 6 at once");
    EXPECT_EQ(std::count_if(said.begin(), said.end(), [&](const std::string& line) { return line.starts_with(start); }),
              1)
        << start;
  }
}

TEST(SaverTest, SavesWhereTheRunStands) {
  SmallTraining small;
  const auto group = comm::single_group();
  TrainingContext context(small.job, small.options, *group);
  Saver saver(context);
  context.state.step = 5;
  context.state.data_shift = 2;
  context.state.scores.best = 0.5;
  saver.save(SmallTraining::step_of(context), {.best = true});
  EXPECT_TRUE(saver.is_under_way());
  saver.settle_best();
  EXPECT_FALSE(saver.is_under_way());
  EXPECT_EQ(saver.num_saves(), 1);
  EXPECT_GT(saver.stall_seconds(), 0);
  const auto found = run::CheckpointStore(small.options.run / "checkpoints").best().checkpoint.value();
  base::Json expected = base::Json::object();
  context.state.write(expected);
  for (const auto& member : expected.members()) {
    if (member.key.find("seconds") != std::string::npos) continue;  // they go on
    EXPECT_EQ(found.state.at(member.key), member.value) << member.key;
  }
  EXPECT_EQ(run::LoaderState::from_json(found.state.at("loader")), context.timetable.loader_state(7));
}

TEST(SaverTest, WhatCouldNotBeSavedIsNotTheBest) {
  SmallTraining small;
  small.options.disk = std::make_shared<run::FaultyDisk>(run::FaultyDisk::Fault::fail, 2);
  const auto group = comm::single_group();
  TrainingContext context(small.job, small.options, *group);
  Saver saver(context);
  const step::Step step = SmallTraining::step_of(context);
  context.state.step = 1;
  context.state.scores.best = 0.75;
  saver.save(step, {.best = true, .best_before = 0.5});
  saver.settle_best();
  EXPECT_EQ(saver.num_saves(), 0);
  EXPECT_EQ(context.state.scores.best, 0.5);
  EXPECT_EQ(small.events("save_failed").size(), 1U);
  saver.save_durably(step);  // there is room again
  EXPECT_EQ(saver.num_saves(), 1);
}

TEST(SaverTest, TheLastSaveMustNotFail) {
  SmallTraining small;
  small.options.disk = std::make_shared<run::FaultyDisk>(run::FaultyDisk::Fault::persist, 1);
  const auto group = comm::single_group();
  TrainingContext context(small.job, small.options, *group);
  Saver saver(context);
  context.state.step = context.timetable.total_steps();
  saver.save(SmallTraining::step_of(context));
  EXPECT_THROW(saver.settle(Saver::Wait::yes), base::Error);
  EXPECT_TRUE(std::filesystem::exists(small.options.run / "weights.safetensors"));
}

TEST(SaverTest, IsDueByTheDistanceOfTheJobButNotBehindStepsThatChangedNothing) {
  SmallTraining small;
  small.job.checkpoint.every_epochs = 1;  // 3 steps
  small.job.checkpoint.milestone_epochs = 4. / 3;
  comm::run_thread_ranks(2, [&](comm::Group& group) {
    TrainingContext context(small.job, small.options, group);
    Saver saver(context);
    std::vector<int64_t> due;
    for (int64_t& step = context.state.step; step < 9; ++step) {
      if (step > 0 && saver.is_due()) due.push_back(step);
    }
    EXPECT_EQ(due, (std::vector<int64_t>{3, 4, 6, 8}));
    context.state.nonfinite = 1;
    EXPECT_FALSE(saver.is_due());
  });
}

TEST(SaverTest, ByTheClockOfRankZeroNothingIsDueInTheFirstMinute) {
  SmallTraining small;
  small.job.checkpoint.every_epochs = 0;
  comm::run_thread_ranks(2, [&](comm::Group& group) {
    TrainingContext context(small.job, small.options, group);
    Saver saver(context);
    context.state.step_seconds = 1;
    for (int64_t& step = context.state.step; step < 9; ++step) EXPECT_FALSE(saver.is_due());
    saver.forget_look();
    context.state.step = 0;
    EXPECT_FALSE(saver.is_due());
  });
}

// Two nodes of one rank each.
TEST(SaverTest, TheFirstRankOfEachNodeWritesItsPartitions) {
  SmallTraining small;
  small.job.training.zero = 3;
  comm::run_thread_ranks(2, [&](comm::Group& group) {
    TrainOptions options = small.options;
    options.node = base::text("node-", group.rank());
    TrainingContext context(small.job, options, group);
    Saver saver(context);
    const step::Step step = SmallTraining::step_of(context);
    context.state.step = 3;
    saver.save_durably(step);
    EXPECT_EQ(saver.num_saves(), group.rank() == 0 ? 1 : 0);
  });
  const auto found = run::CheckpointStore(small.options.run / "checkpoints").newest().checkpoint.value();
  EXPECT_EQ(found.step, 3);
  EXPECT_TRUE(found.state.contains("cut"));
}

}  // namespace
}  // namespace lockstep::training
