// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::training {
namespace {

using base::text;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

spec::Job plain_job() {
  spec::Job job;
  job.name = "agreement";
  job.data.train = job.data.validate = "synthetic";
  job.data.samples = 24;
  job.data.image_size = 8;
  job.data.threads = 1;
  job.model.name = "mlp";
  job.model.classes = 3;
  job.model.width = 8;
  job.training.global_batch = 8;
  job.training.steps = 2;
  job.training.threads = 1;
  return job;
}

using Change = std::function<void(spec::Job&, TrainOptions&)>;

// What each of the ranks hears when the last one is changed so; empty: it trained to the end.
std::vector<std::string> heard(const Change& change, int64_t ranks = 2) {
  const base::TemporaryFolder folder;
  auto groups = comm::thread_groups(ranks);
  std::vector<std::string> all(groups.size());
  std::vector<std::jthread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      spec::Job job = plain_job();
      TrainOptions options;
      options.run = folder.path() / "run";
      options.node = text("node-", rank);
      if (rank == ranks - 1) change(job, options);
      try {
        EXPECT_TRUE(train(job, options, *groups[static_cast<size_t>(rank)]).finished);
      } catch (const base::Error& error) {
        EXPECT_EQ(error.blame(), base::Blame::user);
        all[static_cast<size_t>(rank)] = error.message();
      }
    });
  }
  threads.clear();
  return all;
}

TEST(AgreementTest, NamesTheRankItsHostTheKeyAndBothValuesOnEveryRank) {
  EXPECT_THAT(heard([](auto& job, auto&) { job.training.optimizer.lr = 0.25; }, 3),
              Each(AllOf(HasSubstr("user error: rank 2 on node-2 would not train what rank 0 on node-0 trains: "
                                   "training.optimizer.lr is 0.25 there, 0.1 on rank 0"),
                         HasSubstr("fix: start all ranks with the same job file"), HasSubstr("node-2"))));
}

TEST(AgreementTest, OtherDataAreNamedByTheirNumber) {
  EXPECT_THAT(heard([](auto& job, auto&) { job.data.samples = 21; }),
              Each(AllOf(HasSubstr("rank 1 on node-1"), HasSubstr("of the training samples) is \"21 samples, SHA-256"),
                         HasSubstr("\"24 samples, SHA-256"), HasSubstr("fix: make the data on node-1 the same"))));
  EXPECT_THAT(heard([](auto& job, auto&) { job.data.validate = ""; }),
              Each(HasSubstr("of the validation samples) is \"absent\" there, \"24 samples")));
}

// Each of them once ended in an abort, a segmentation fault, a hang, or in weights of two kinds.
TEST(AgreementTest, WhatPartsTheRanksIsNamedBeforeAnythingIsMade) {
  const std::pair<const char*, Change> changes[] = {
      {"training.global_batch", [](auto& job, auto&) { job.training.global_batch = 12; }},
      {"model.name", [](auto& job, auto&) { job.model.name = "smallcnn"; }},
      {"training.steps", [](auto& job, auto&) { job.training.steps = 3; }},
      {"data.augment", [](auto& job, auto&) { job.data.augment = spec::Augment::none; }},
      {"training.clip_norm", [](auto& job, auto&) { job.training.clip_norm = 0.01; }},
      {"--history", [](auto&, auto& options) { options.history = true; }},
      {"--run", [](auto&, auto& options) { options.run += "-other"; }}};
  for (const auto& [key, change] : changes) EXPECT_THAT(heard(change), Each(HasSubstr(text("trains: ", key, " is "))));
}

TEST(AgreementTest, SaysHowManyDiffer) {
  comm::run_thread_ranks(4, [](comm::Group& group) {
    base::Json mine = base::Json::object();
    mine["training.seed"] = group.rank() == 1 ? 0 : group.rank();
    try {
      check_terms(mine, text("node-", group.rank()), group);
      ADD_FAILURE() << "agreed";
    } catch (const base::Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("rank 2 on node-2"));
      EXPECT_THAT(error.what(), HasSubstr("training.seed is 2 there, 0 on rank 0 (2 ranks differ from rank 0)"));
    }
  });
}

TEST(AgreementTest, WhatANodeHasOfItsOwnMayDiffer) {
  const auto own = [](spec::Job& job, TrainOptions& options) {
    job.data.threads = 2;
    job.data.memory /= 2;
    job.training.threads = 2;
    job.data.test = "elsewhere";
    options.restarted = true;
  };
  EXPECT_THAT(heard(own), Each(""));
}

TEST(AgreementTest, OtherWeightsToBeginWithAreFound) {
  const base::TemporaryFolder folder;
  const auto weights_of = [&](int64_t seed) {
    spec::Job job = plain_job();
    job.training.seed = seed;
    TrainOptions options;
    options.run = folder.path() / std::to_string(seed);
    train(job, options, *comm::single_group());
    return (options.run / "weights.safetensors").string();
  };
  const std::string one = weights_of(1), other = weights_of(2);
  EXPECT_THAT(heard([&](auto& job, auto&) { job.model.weights = other; }),
              Each(HasSubstr("weights (the values to begin with)")));
  comm::run_thread_ranks(2, [&](comm::Group& group) {
    spec::Job job = plain_job();
    job.model.weights = group.rank() == 0 ? one : text(folder.path().string(), "/./1/weights.safetensors");
    TrainOptions options;
    options.run = folder.path() / "both";
    EXPECT_TRUE(train(job, options, group).finished);
  });
}

TEST(AgreementTest, TheAnswerOfRankZeroCounts) {
  comm::run_thread_ranks(3, [&](comm::Group& group) {
    EXPECT_TRUE(answer_of_rank_0(group.rank() == 0, group));
    EXPECT_FALSE(answer_of_rank_0(group.rank() != 0, group));
  });
}

}  // namespace
}  // namespace lockstep::training
