// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/forecast/limits.h"
#include "lockstep/run/faulty_disk.h"
#include "lockstep/run/journal.h"
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

run::History history_of(const spec::Job& job, const Voice& voice = {}) {
  const base::TemporaryFolder folder;
  const auto group = comm::single_group();
  TrainOptions options;
  options.run = folder.path() / "run";
  options.voice = voice;
  train(job, options, *group);
  return run::read_journal(options.run / "journal.jsonl");
}

forecast::Length planned(const spec::Job& job) {
  const int64_t validation = job.data.validate.empty() ? 0 : job.data.samples;
  const forecast::Pace pace{.step = 1e-3, .first_save = 60, .save_interval = 60};
  return forecast::length_of(forecast::workload_of(job, job.data.samples, validation), pace).value();
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

TEST(SessionSaveTest, WhateverASaveFailsWithIsToldAndTrainingGoesOn) {
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

TEST(SessionSaveTest, ThePlanCountsItsSaves) {
  for (const double every : {0.0, 0.5, 1.0, 2.0}) {
    auto job = saving_job();
    job.checkpoint.every_epochs = every;
    const auto length = planned(job);
    EXPECT_EQ(static_cast<int64_t>(history_of(job).named("save").size()), length.num_saves) << "every " << every;
    EXPECT_EQ(length.most_saves, length.num_saves);
  }
}

TEST(SessionSaveTest, ThePlanCountsOneMoreForEachEvaluationThatMayBeTheBest) {
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

TEST(SessionSaveTest, SaysWhatItsCheckpointsTakeOfTheDisk) {
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

}  // namespace
}  // namespace lockstep::training
