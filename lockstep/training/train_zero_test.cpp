// SPDX-License-Identifier: Apache-2.0
// Runs of several ranks that share what they train (training.zero), as threads: their checkpoints lie in partitions.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/model/snapshot.h"
#include "lockstep/run/faulty_disk.h"
#include "lockstep/run/journal.h"
#include "lockstep/training/short_run.h"
#include "lockstep/training/train.h"
#include "lockstep/weights/safetensors.h"

namespace lockstep::training {
namespace {

using base::Path;
using base::text;

// Without batch norms, which see other batches on other numbers of ranks.
spec::Job cut_job(int64_t zero) {
  spec::Job job;
  job.name = "cut";
  job.data.train = "synthetic";
  job.data.samples = 24;
  job.data.image_size = 8;
  job.data.threads = 1;
  job.model.name = "mlp";
  job.model.classes = 3;
  job.model.width = 8;
  job.training.global_batch = 8;  // 3 steps an epoch
  job.training.epochs = 3;
  job.training.threads = 1;
  job.training.zero = zero;
  job.training.optimizer.name = spec::OptimizerName::adamw;
  job.training.optimizer.lr = 3e-3;
  job.checkpoint.every_epochs = 1;
  job.checkpoint.keep = 3;
  return job;
}

struct World {
  int64_t ranks = 1;
  int64_t nodes = 1;        // rank r is on node r % nodes
  int64_t stop_after = -1;  // that step
  bool history = false;
  std::function<std::shared_ptr<run::Disk>(int64_t)> disk = [](int64_t) { return run::real_disk(); };  // of a rank
};

TrainResult train_on(const World& world, const Path& folder, const spec::Job& job) {
  TrainResult of_first;
  comm::run_thread_ranks(world.ranks, [&](comm::Group& group) {
    TrainOptions options;
    options.run = folder;
    options.node = text("node-", group.rank() % world.nodes);
    options.disk = world.disk(group.rank());
    options.history = world.history;
    if (world.stop_after > 0) options.stop = stop_in_step(options.activity, world.stop_after);
    const auto result = train(job, options, group);
    if (group.rank() == 0) of_first = result;
  });
  return of_first;
}

// As far apart as sums of other order may bring weights (the bound of tests of training.zero).
void expect_close(const Path& run, const Path& expected_run, const std::string& what) {
  const weights::SafetensorsFile file(run / "weights.safetensors"), expected(expected_run / "weights.safetensors");
  ASSERT_EQ(file.tensors().size(), expected.tensors().size()) << what;
  for (const auto& view : file.tensors()) {
    const auto* other = expected.find(view.name);
    ASSERT_TRUE(other && other->bytes.size() == view.bytes.size()) << what << " " << view.name;
    for (size_t at = 0; view.dtype == weights::Dtype::F32 && at < view.bytes.size(); at += sizeof(float)) {
      float a = 0, b = 0;
      std::memcpy(&a, view.bytes.data() + at, sizeof a);
      std::memcpy(&b, other->bytes.data() + at, sizeof b);
      ASSERT_LE(std::abs(a - b), 1e-5 + 1e-4 * std::abs(b)) << what << " " << view.name;
    }
  }
}

std::set<std::string> names_in(const Path& folder) {
  std::set<std::string> names;
  for (const auto& item : std::filesystem::directory_iterator(folder)) names.insert(item.path().filename().string());
  return names;
}

TEST(TrainZeroTest, WhatSeveralNodesSavedGoesOnOnAnyNumberOfRanksWithoutZero) {
  const base::TemporaryFolder folder;
  const Path straight = folder.path() / "straight";
  EXPECT_TRUE(train_on({}, straight, cut_job(0)).finished);
  for (const int64_t zero : {1, 2, 3}) {
    for (const int64_t nodes : {2, 3}) {
      const std::string what = text("zero ", zero, " on ", nodes, " nodes");
      const Path saved = folder.path() / what;
      const auto first = train_on({.ranks = 3, .nodes = nodes, .stop_after = 5}, saved, cut_job(zero));
      EXPECT_EQ(first.step, 5) << what;
      std::set<std::string> files = {"manifest.json", "optimizer.safetensors", "state.json", "weights.safetensors"};
      for (int64_t node = 0; node < nodes; ++node) files.insert(text("part-000", node, ".safetensors"));
      EXPECT_EQ(names_in(saved / "checkpoints" / "step-00000005"), files) << what;
      for (const int64_t ranks : {1, 2, 4}) {
        const Path moved = folder.path() / text(what, " to ", ranks);
        std::filesystem::copy(saved, moved, std::filesystem::copy_options::recursive);
        const auto second = train_on({.ranks = ranks}, moved, cut_job(0));
        EXPECT_EQ(second.resumed_at, 5) << what;
        expect_close(moved, straight, text(what, ", then ", ranks, " ranks"));
      }
    }
  }
}

TEST(TrainZeroTest, AStopChangesNoBitOfTheSameRanks) {
  for (const int64_t zero : {1, 2, 3}) {
    const base::TemporaryFolder folder;
    auto job = cut_job(zero);
    if (zero < 3) job.training.ema_decay = 0.9;
    const auto straight = train_on({.ranks = 3, .nodes = 2}, folder.path() / "straight", job);
    const Path run = folder.path() / "run";
    train_on({.ranks = 3, .nodes = 2, .stop_after = 4}, run, job);
    const auto second = train_on({.ranks = 3, .nodes = 3}, run, job);
    EXPECT_EQ(second.resumed_at, 4);
    EXPECT_FALSE(straight.state_sha256.empty());
    EXPECT_EQ(second.state_sha256, straight.state_sha256) << "zero " << zero;
    EXPECT_EQ(second.weights_sha256, straight.weights_sha256) << "zero " << zero;
  }
}

// step -> the line that the rank wrote down for it last.
std::map<int64_t, base::Json> history_of(const Path& run, int64_t rank) {
  std::map<int64_t, base::Json> steps;
  for (const auto& line : base::split(base::read_file(run / "history" / text("rank-", rank, ".jsonl")), '\n')) {
    if (line.empty()) continue;
    const auto said = base::parse_json(line, "history");
    if (said.contains("step")) steps.insert_or_assign(said.at("step").as_int(), said);
  }
  return steps;
}

TEST(TrainZeroTest, TheHistoryOfARankIsOfTheWeightsThatItHas) {
  for (const int64_t zero : {1, 3}) {
    const base::TemporaryFolder folder;
    const Path straight = folder.path() / "straight", run = folder.path() / "run";
    train_on({.ranks = 2, .history = true}, straight, cut_job(zero));
    train_on({.ranks = 2, .stop_after = 4, .history = true}, run, cut_job(zero));
    train_on({.ranks = 2, .history = true}, run, cut_job(zero));
    std::vector<std::set<int64_t>> sums(2);
    for (const int64_t rank : {0, 1}) {
      const auto steps = history_of(straight, rank), again = history_of(run, rank);
      ASSERT_EQ(steps.size(), 9U);
      ASSERT_EQ(again.size(), 9U);
      for (const auto& [step, line] : steps) {
        sums[static_cast<size_t>(rank)].insert(line.at("weights").as_int());
        EXPECT_EQ(again.at(step).dump(-1), line.dump(-1)) << "zero " << zero;
        EXPECT_EQ(line.contains("partition") ? line.at("partition").dump(-1) : "",
                  zero == 3 ? text('[', rank, ",2]") : "");
      }
      EXPECT_EQ(sums[static_cast<size_t>(rank)].size(), 9U) << "zero " << zero << ": no two steps have the same";
    }
    EXPECT_EQ(sums[0] == sums[1], zero == 1) << "partitions differ, whole weights do not";
  }
}

std::vector<model::Named> copies_from(const spec::Model& what, const Path& weights) {
  auto network = model::make_network(what, 8, 99, at::kCPU);
  model::load_weights_from(network, weights);
  return model::all_tensors(network);
}

TEST(TrainZeroTest, WeightsToBeginWithMayLieInThePartitionsOfACheckpoint) {
  const base::TemporaryFolder folder;
  const auto job = cut_job(3);
  train_on({.ranks = 2, .nodes = 2}, folder.path() / "cut", job);
  const Path last = folder.path() / "cut" / "checkpoints" / "step-00000009";
  const auto expected = copies_from(job.model, folder.path() / "cut" / "weights.safetensors");
  for (const Path& from : {last, last / "", last / "weights.safetensors"}) {
    const auto loaded = copies_from(job.model, from);
    ASSERT_EQ(loaded.size(), expected.size());
    for (size_t i = 0; i < loaded.size(); ++i) {
      EXPECT_TRUE(loaded[i].tensor.equal(expected[i].tensor)) << from << " " << loaded[i].name;
    }
    // A run that trains none of it but the head begins, and ends, with the same rest.
    auto next = cut_job(0);
    next.model.weights = from.string();
    next.training.epochs = 0;
    next.training.phases.resize(1);
    next.training.phases[0].epochs = 1;
    next.training.phases[0].train_from = "head";
    EXPECT_TRUE(train_on({}, folder.path() / "next", next).finished);
    const auto ended = copies_from(job.model, folder.path() / "next" / "weights.safetensors");
    EXPECT_TRUE(ended[0].tensor.equal(expected[0].tensor)) << ended[0].name;
    std::filesystem::remove_all(folder.path() / "next");
  }
}

TEST(TrainZeroTest, WeightsOfADamagedCheckpointAreRefused) {
  const base::TemporaryFolder folder;
  train_on({.ranks = 2, .nodes = 2}, folder.path(), cut_job(3));
  const Path last = folder.path() / "checkpoints" / "step-00000009";
  const auto error_from = [&](const Path& path) -> std::string {
    try {
      copies_from(cut_job(3).model, path);
    } catch (const base::Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(error_from(last / "part-0001.safetensors").find("does not have its weights"), std::string::npos);
  EXPECT_NE(error_from(folder.path()).find("not a checkpoint"), std::string::npos);
  std::string bytes = base::read_file(last / "part-0001.safetensors");
  bytes[bytes.size() - 20] = static_cast<char>(bytes[bytes.size() - 20] ^ 4);
  base::write_file(last / "part-0001.safetensors", bytes);
  EXPECT_NE(error_from(last).find("part-0001.safetensors has a wrong checksum"), std::string::npos);
}

TEST(TrainZeroTest, ADamagedPartOfAnyNodeSendsItToTheCheckpointBefore) {
  const base::TemporaryFolder folder;
  const auto job = cut_job(3);
  const auto straight = train_on({.ranks = 3, .nodes = 3}, folder.path() / "straight", job);
  train_on({.ranks = 3, .nodes = 3, .stop_after = 5}, folder.path() / "saved", job);
  for (const int64_t node : {0, 1, 2}) {
    const Path run = folder.path() / text(node);
    std::filesystem::copy(folder.path() / "saved", run, std::filesystem::copy_options::recursive);
    const Path part = run / "checkpoints" / "step-00000005" / text("part-000", node, ".safetensors");
    std::string bytes = base::read_file(part);
    bytes[bytes.size() - 20] = static_cast<char>(bytes[bytes.size() - 20] ^ 4);
    base::write_file(part, bytes);
    const auto again = train_on({.ranks = 3, .nodes = 3}, run, job);
    EXPECT_EQ(again.resumed_at, 3);
    EXPECT_EQ(again.state_sha256, straight.state_sha256) << "part " << node;
  }
}

// The second node's disk fails at one act, full or broken: rank 0 hears of it, and training goes on.
TEST(TrainZeroTest, AFaultOfAnotherNodesDiskCostsASaveAndNoBit) {
  const base::TemporaryFolder folder;
  const auto job = cut_job(2);
  const auto straight = train_on({.ranks = 2, .nodes = 2}, folder.path() / "straight", job);
  for (const int64_t act : {0, 1, 2, 4}) {
    const Path run = folder.path() / text(act);
    const auto result = train_on({.ranks = 2,
                                  .nodes = 2,
                                  .disk = [&](int64_t rank) -> std::shared_ptr<run::Disk> {
                                    if (rank == 0) return run::real_disk();
                                    return std::make_shared<run::FaultyDisk>(run::FaultyDisk::Fault::fail, act);
                                  }},
                                 run, job);
    EXPECT_EQ(result.state_sha256, straight.state_sha256) << "act " << act;
    EXPECT_EQ(result.saves, 2) << "act " << act;
    const auto failures = run::read_journal(run / "journal.jsonl").named("save_failed");
    ASSERT_EQ(failures.size(), 1U) << "act " << act;
    EXPECT_EQ(failures[0].at("step").as_int(), 3);
    EXPECT_NE(failures[0].at("message").as_string().find("part-0001.safetensors was not written on another node"),
              std::string::npos)
        << failures[0].at("message").as_string();
  }
}

TEST(TrainZeroTest, StepsThatAreNotFiniteSendAllRanksBack) {
  for (const int64_t zero : {1, 3}) {
    const base::TemporaryFolder folder;
    auto job = cut_job(zero);
    job.training.epochs = 0;
    job.training.phases.resize(2);
    job.training.phases[0].epochs = 2;
    job.training.phases[1].epochs = 4;
    job.training.phases[1].lr_scale = 1e30;  // going back helps a run, but never this one
    job.training.max_rewinds = 2;
    job.checkpoint.keep = 5;
    try {
      train_on({.ranks = 2, .nodes = 2}, folder.path(), job);
      ADD_FAILURE() << "finished";
    } catch (const base::Error& error) {
      EXPECT_NE(error.message().find("no finite loss in 3 steps in a row"), std::string::npos) << error.message();
    }
    const auto rewinds = run::read_journal(folder.path() / "journal.jsonl").named("rewind");
    EXPECT_EQ(rewinds.size(), 2U) << "zero " << zero;
  }
}

// With a factor this close to 1 some batches count as spikes, those of two samples first.
TEST(TrainZeroTest, ASpikeLeavesItsDataOutOnAllRanksAndAStopChangesNoBitOfThat) {
  for (const int64_t zero : {1, 3}) {
    const base::TemporaryFolder folder;
    auto job = cut_job(zero);
    job.data.samples = 26;
    job.training.epochs = 8;
    job.training.spike_factor = 1.05;
    job.training.max_rewinds = 50;
    job.checkpoint.keep = 20;
    const auto straight = train_on({.ranks = 2, .nodes = 2}, folder.path() / "straight", job);
    EXPECT_TRUE(straight.finished);
    EXPECT_GE(straight.rewinds, 1) << "zero " << zero;
    const Path run = folder.path() / "run";
    EXPECT_FALSE(train_on({.ranks = 2, .nodes = 2, .stop_after = 19}, run, job).finished);
    const auto second = train_on({.ranks = 2, .nodes = 2}, run, job);
    EXPECT_EQ(second.state_sha256, straight.state_sha256) << "zero " << zero;
  }
}

TEST(TrainZeroTest, AReplayedStepIsTheSameStep) {
  for (const int64_t zero : {1, 3}) {
    const base::TemporaryFolder folder;
    auto job = cut_job(zero);
    const auto plain = train_on({.ranks = 2}, folder.path() / "plain", job);
    job.training.replay_every = 2;
    EXPECT_EQ(train_on({.ranks = 2}, folder.path() / "replayed", job).state_sha256, plain.state_sha256) << zero;
  }
}

}  // namespace
}  // namespace lockstep::training
