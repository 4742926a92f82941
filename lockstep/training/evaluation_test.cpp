// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/evaluation.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/run/checkpoint.h"
#include "lockstep/run/folder.h"
#include "lockstep/run/journal.h"
#include "lockstep/training/short_run.h"
#include "lockstep/training/small_training.h"
#include "lockstep/training/train.h"

namespace lockstep::training {
namespace {

// One step an epoch: an evaluation behind every step.
spec::Job job_of_epochs(double epochs) {
  spec::Job job;
  job.name = "evaluated";
  job.data.train = job.data.validate = "synthetic";
  job.data.samples = job.training.global_batch = 24;
  job.data.image_size = 8;
  job.data.threads = job.training.threads = 1;
  job.model.name = "mlp";
  job.model.classes = 3;
  job.model.width = 4;
  job.training.epochs = epochs;
  job.training.optimizer.lr = 0.6;
  job.checkpoint.every_epochs = 1000;
  return job;
}

TrainResult sit(const base::Path& run, const spec::Job& job, TrainOptions options = {}) {
  const auto group = comm::single_group();
  options.run = run;
  return train(job, options, *group);
}

TrainOptions stopping_after(int64_t step) {
  TrainOptions options;
  options.stop = stop_in_step(options.activity, step);
  return options;
}

// Step and top-1 of each evaluation, and which checkpoint is marked best.
std::vector<std::string> evaluations_of(const base::Path& run) {
  std::vector<std::string> all;
  for (const auto& event : run::read_journal(run / "journal.jsonl").named("evaluate")) {
    all.push_back(base::text(event.at("step").as_int(), ": ", event.at("top1").as_double()));
  }
  const auto best = run::RunPaths{run}.checkpoints() / "best";
  if (std::filesystem::exists(best)) all.push_back(base::read_file(best));
  return all;
}

std::vector<int64_t> steps_evaluated(const base::Path& run) {
  std::vector<int64_t> steps;
  for (const auto& event : run::read_journal(run / "journal.jsonl").named("evaluate")) {
    steps.push_back(event.at("step").as_int());
  }
  return steps;
}

TEST(EvaluationTest, AStopWhereAnEvaluationIsDueLosesNone) {
  const base::TemporaryFolder folder;
  const auto job = job_of_epochs(8);
  sit(folder.path() / "straight", job);
  const auto straight = evaluations_of(folder.path() / "straight");
  ASSERT_EQ(straight.size(), 8U + 1);
  for (int64_t stop = 1; stop < 8; ++stop) {
    const auto run = folder.path() / std::to_string(stop);
    EXPECT_EQ(sit(run, job, stopping_after(stop)).step, stop);
    EXPECT_EQ(steps_evaluated(run).size(), static_cast<size_t>(stop) - 1) << "a stop waits for none";
    sit(run, job);
    EXPECT_EQ(evaluations_of(run), straight) << "stopped after step " << stop;
  }
}

TEST(EvaluationTest, AStopAtTheEndOfAPhaseLosesNoEvaluation) {
  const base::TemporaryFolder folder;
  auto job = job_of_epochs(0);
  job.model.name = "smallcnn";
  job.data.image_size = 16;
  job.training.phases.resize(2);
  job.training.phases[0].epochs = job.training.phases[1].epochs = 1;
  job.training.phases[0].train_from = "head";
  job.training.phases[0].cache_features = true;
  const auto straight = sit(folder.path() / "straight", job);
  // Nothing is asked between the step and its evaluation.
  EXPECT_EQ(sit(folder.path() / "run", job, stopping_after(1)).step, 1);
  EXPECT_EQ(sit(folder.path() / "run", job).weights_sha256, straight.weights_sha256);
  EXPECT_EQ(evaluations_of(folder.path() / "run"), evaluations_of(folder.path() / "straight"));
}

TEST(EvaluationTest, AWalltimeThatEndsInFrontOfAnEvaluationLosesNone) {
  const base::TemporaryFolder folder;
  const auto job = job_of_epochs(80);
  sit(folder.path() / "straight", job);
  TrainOptions options;
  // Less than 80 steps of 0.2. Two saves are taken to need 2 at first, and it may be long in beginning.
  options.seconds_left = 12;
  options.stop = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return std::string();
  };
  const auto first = sit(folder.path() / "run", job, options);
  EXPECT_EQ(first.stop_reason, "walltime");
  EXPECT_LT(first.step, 80);
  EXPECT_TRUE(sit(folder.path() / "run", job).finished);
  EXPECT_EQ(evaluations_of(folder.path() / "run"), evaluations_of(folder.path() / "straight"));
}

void change_newest(const base::Path& run, const std::function<void(base::Json&)>& change) {
  run::CheckpointStore store(run::RunPaths{run}.checkpoints());
  const auto newest = store.newest().checkpoint.value();
  run::Save save{.step = newest.step, .state = newest.state, .parts = {}};
  change(save.state);
  for (const char* name : {"weights.safetensors", "optimizer.safetensors"}) {
    const std::string content = base::read_file(newest.file(name));
    save.parts.push_back({name, static_cast<int64_t>(content.size()), [content](const run::Sink& sink) {
                            sink(std::as_bytes(std::span(content.data(), content.size())));
                          }});
  }
  store.save(save);
}

// As an earlier version would have left it.
TEST(EvaluationTest, ACheckpointThatDoesNotSayWhenItWasEvaluatedOwesNothing) {
  const base::TemporaryFolder folder;
  const auto job = job_of_epochs(4);
  sit(folder.path() / "run", job, stopping_after(2));
  change_newest(folder.path() / "run", [](base::Json& state) { state.erase("evaluated"); });
  EXPECT_EQ(sit(folder.path() / "run", job).resumed_at, 2);
  EXPECT_EQ(steps_evaluated(folder.path() / "run"), (std::vector<int64_t>{1, 3, 4}));
}

// It is saved before an evaluation that may take too long; a kill within that leaves it as this does.
TEST(EvaluationTest, AKillWithinTheLastEvaluationLetsItBeMadeAgain) {
  const base::TemporaryFolder folder;
  const auto job = job_of_epochs(2);
  const auto straight = sit(folder.path() / "run", job);
  change_newest(folder.path() / "run", [](base::Json& state) {
    state["evaluated"] = 1;
    state.erase("evaluation");
  });
  const auto again = sit(folder.path() / "run", job);
  EXPECT_EQ(again.resumed_at, 2);
  EXPECT_EQ(again.evaluation, straight.evaluation);
  EXPECT_EQ(again.state_sha256, straight.state_sha256);
  EXPECT_EQ(steps_evaluated(folder.path() / "run"), (std::vector<int64_t>{1, 2}));
}

TEST(EvaluationTest, EveryZeroEpochsIsOnceAtTheEnd) {
  const base::TemporaryFolder folder;
  auto job = job_of_epochs(4);
  job.evaluation.every_epochs = 0;
  EXPECT_TRUE(sit(folder.path() / "run", job).evaluation.has_value());
  EXPECT_EQ(steps_evaluated(folder.path() / "run"), (std::vector<int64_t>{4}));
  job.data.validate.clear();
  EXPECT_FALSE(sit(folder.path() / "none", job).evaluation.has_value());
}

TEST(EvaluationTest, ANetworkWithoutAFiniteLossIsNeverTheBest) {
  const base::TemporaryFolder folder;
  auto job = job_of_epochs(4);
  job.training.optimizer.lr = 1e38;
  job.training.max_nonfinite_steps = 100;
  const auto result = sit(folder.path() / "run", job);
  EXPECT_TRUE(result.finished);
  EXPECT_TRUE(result.evaluation.has_value());
  EXPECT_FALSE(result.evaluation->figure("loss").has_value());
  const auto history = run::read_journal(folder.path() / "run" / "journal.jsonl");
  for (const auto& event : history.named("evaluate")) {
    EXPECT_TRUE(event.at("loss").is_null());
    EXPECT_EQ(event.at("nonfinite").as_int(), 24);
  }
  EXPECT_EQ(history.named("evaluate").size(), 4U);
  for (const auto& event : history.named("save")) EXPECT_FALSE(event.at("best").as_bool());
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "run" / "checkpoints" / "best"));
  EXPECT_EQ(sit(folder.path() / "run", job).evaluation, result.evaluation);  // and the checkpoint can be read again
}

TEST(EvaluationTest, ALossThatWasCutIsABound) {
  const base::TemporaryFolder folder;
  auto job = job_of_epochs(2);
  job.training.optimizer.lr = 1e6;
  const auto result = sit(folder.path() / "run", job);
  EXPECT_TRUE(result.evaluation->figure("loss") && result.evaluation->figure("loss_cut"));
  EXPECT_TRUE(
      sit(folder.path() / "run", job).evaluation->figure("loss_cut").has_value());  // a finished run tells the same
  job.training.optimizer.lr = 0.1;
  EXPECT_FALSE(sit(folder.path() / "sound", job).evaluation->figure("loss_cut").has_value());
}

// Takes no checkpoint but the first and the last, and says so only when the next evaluation has begun.
class LateToFail : public run::Disk {
 public:
  LateToFail(std::shared_ptr<run::Activity> activity, int64_t last) : activity_(std::move(activity)), last_(last) {}
  uint64_t free_bytes(const base::Path& folder) override { return real_->free_bytes(folder); }
  void make_folder(const base::Path& path) override { real_->make_folder(path); }
  std::unique_ptr<run::DiskFile> create(const base::Path& path) override {
    const std::string name = path.parent_path().filename().string();
    const int64_t step = name.starts_with(".saving-step-") ? std::stoll(name.substr(13)) : 0;
    if (step <= 1 || step == last_) return real_->create(path);
    run::Heartbeat heartbeat;
    for (int tries = 0; tries < 10000 && heartbeat.phase != run::Phase::evaluating; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      activity_->write_into(heartbeat);
    }
    throw base::Error(base::Blame::machine, "a test of the disk", "");
  }
  void rename(const base::Path& from, const base::Path& to) override { real_->rename(from, to); }
  void sync_folder(const base::Path& path) override { real_->sync_folder(path); }
  void remove(const base::Path& path) override { real_->remove(path); }
  bool exists(const base::Path& path) override { return real_->exists(path); }
  std::vector<base::Path> list(const base::Path& folder) override { return real_->list(folder); }

 private:
  std::shared_ptr<run::Activity> activity_;
  int64_t last_;
  std::shared_ptr<run::Disk> real_ = run::real_disk();
};

// With 0.5 saved and 0.9 and 0.7 lost, 0.8 is the best so far.
TEST(EvaluationTest, WhatASaveLostIsMeasuredAgainstWhatIsSaved) {
  const base::TemporaryFolder folder;
  const int64_t last = 24;
  TrainOptions options;
  options.disk = std::make_shared<LateToFail>(options.activity, last);
  sit(folder.path() / "run", job_of_epochs(static_cast<double>(last)), options);
  std::map<int64_t, double> top1;
  std::vector<int64_t> better, failed;
  for (const auto& event : run::read_journal(folder.path() / "run" / "journal.jsonl").events) {
    const int64_t step = event.int_or("step", 0);
    if (event.at("event").as_string() == "evaluate") top1[step] = event.at("top1").as_double();
    if (event.at("event").as_string() == "save_failed") failed.push_back(step);
  }
  int64_t dips = 0;  // lost, lower than the lost one before it, and yet better than what is saved
  for (int64_t step = 2; step < last; ++step) {
    if (top1[step] < top1[1]) continue;  // of equals the later one
    better.push_back(step);
    dips += step > 3 && top1[step] < top1[step - 2] ? 1 : 0;
  }
  EXPECT_GT(dips, 0);
  EXPECT_EQ(failed, better);
}

TEST(EvaluationTest, IsOwedWhereItWasDueAndNotMade) {
  SmallTraining small;
  small.job.evaluation.every_epochs = 1;  // 3 steps
  const auto group = comm::single_group();
  TrainingContext context(small.job, small.options, *group);
  const Evaluation evaluation(context);
  EXPECT_TRUE(evaluation.is_due(3) && evaluation.is_due(12));
  EXPECT_FALSE(evaluation.is_due(4));
  EXPECT_FALSE(evaluation.is_owed()) << "before the first step";
  context.state.step = 3;
  EXPECT_TRUE(evaluation.is_owed());
  context.state.evaluated = 3;
  EXPECT_FALSE(evaluation.is_owed());
  context.collections.validate.reset();
  EXPECT_FALSE(evaluation.is_due(3));
}

TEST(EvaluationTest, OnlyABetterOneIsTheBestOnEveryRank) {
  SmallTraining small;
  comm::run_thread_ranks(2, [&](comm::Group& group) {
    TrainingContext context(small.job, small.options, group);
    const Feed feed(context, context.timetable.phase_at(0), [] { return std::string(); });
    Evaluation evaluation(context);
    Scores& scores = context.state.scores;
    context.state.step = 3;
    const auto first = evaluation.run(feed);
    EXPECT_TRUE(first.best);
    EXPECT_FALSE(first.best_before.has_value());
    EXPECT_EQ(scores.best, scores.last->figure("top1"));
    EXPECT_EQ(context.state.evaluated, 3);
    const auto again = evaluation.run(feed);
    EXPECT_TRUE(again.best);  // of equals the later one
    EXPECT_EQ(again.best_before, scores.best);
    scores.best = group.rank() == 0 ? -1 : 2;  // rank 0 knows what was saved
    EXPECT_TRUE(evaluation.run(feed).best);
    TrainResult result;
    evaluation.write(result);
    EXPECT_EQ(result.evaluation, scores.last);
  });
  EXPECT_EQ(small.events("evaluate").size(), 1U) << "of one step";
}

TEST(EvaluationTest, MayBeCutWhileItsLengthIsOnlyGuessed) {
  SmallTraining small;
  small.options.seconds_left = 100;
  const auto group = comm::single_group();
  TrainingContext context(small.job, small.options, *group);
  const Evaluation evaluation(context);
  context.state.step_seconds = 0.1;  // 3 batches, 3 times as long at most
  EXPECT_FALSE(evaluation.may_be_cut());
  context.state.step_seconds = 12;
  EXPECT_TRUE(evaluation.may_be_cut());
  context.state.evaluate_seconds = 10;
  EXPECT_FALSE(evaluation.may_be_cut());
  context.state.save_seconds = 50;
  EXPECT_TRUE(evaluation.may_be_cut());
}

}  // namespace
}  // namespace lockstep::training
