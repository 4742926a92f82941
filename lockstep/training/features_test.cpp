// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/features.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "lockstep/step/tiny_network.h"

namespace lockstep::training {
namespace {

std::optional<Features> tiny_features(
    const model::Network& network, const loader::Collection& collection, comm::Group& group, int64_t num_ranks = 1,
    std::function<bool()> stop = [] { return false; }) {
  loader::LoaderOptions options;
  options.data.image_size = step::tiny::kSize;
  options.use = loader::Use::evaluate;
  options.global_batch = 4;
  options.num_ranks = num_ranks;
  const auto loader = loader::make_loader(collection, options, {.seed = 1});
  return compute_features(network, *loader::task_of(options), *loader, static_cast<int64_t>(collection.samples.size()),
                          group, {.to = network.index_of("head"), .stop = std::move(stop)});
}

step::EvaluateOptions tiny_evaluation() {
  spec::Job job;
  job.model.classes = step::tiny::kClasses;
  return {.task = task::make_task(job), .objective = objective::make_objective(job)};
}

int64_t& label(Features& features, int64_t sample) {
  return *reinterpret_cast<int64_t*>(features.fields.at(0).row(sample));
}

TEST(FeaturesTest, OneRowForEverySample) {
  const auto group = comm::single_group();
  const auto network = step::tiny::network();
  const auto collection = loader::synthetic_collection(10, step::tiny::kClasses);
  Features features = tiny_features(network, collection, *group).value();
  ASSERT_EQ(features.num_samples(), 10);
  for (int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(label(features, i), collection.samples[static_cast<size_t>(i)].label);
  }
  EXPECT_EQ(evaluate_features(network, features, 4, *group, tiny_evaluation())->samples(), 10);
}

// A GPU holds one piece of them, whatever their number.
TEST(FeaturesTest, EvaluatesInPiecesOfAnySize) {
  const auto group = comm::single_group();
  const auto network = step::tiny::network();
  Features features = tiny_features(network, loader::synthetic_collection(20, step::tiny::kClasses), *group).value();
  label(features, 8) = -1;  // could not be read
  const auto whole = evaluate_features(network, features, 20, *group, tiny_evaluation());
  EXPECT_EQ(whole->samples(), 19);
  for (const int64_t piece : {1, 7}) {
    const auto score = evaluate_features(network, features, piece, *group, tiny_evaluation());
    EXPECT_EQ(score->samples(), 19);
    EXPECT_EQ(score->headline(), whole->headline());
    EXPECT_NEAR(*score->summary().figure("loss"), *whole->summary().figure("loss"), 1e-6) << piece;
    EXPECT_EQ(score->worst(), whole->worst());
  }
}

// Alike: the network that is evaluated is the one that is trained.
TEST(FeaturesTest, EvaluatesInThePrecisionOfTraining) {
  const auto group = comm::single_group();
  const auto network = step::tiny::network();
  const Features features =
      tiny_features(network, loader::synthetic_collection(20, step::tiny::kClasses), *group).value();
  auto bf16 = tiny_evaluation();
  bf16.precision = spec::Precision::bf16;
  const double exact = *evaluate_features(network, features, 20, *group, tiny_evaluation())->summary().figure("loss");
  const double rounded = *evaluate_features(network, features, 20, *group, bf16)->summary().figure("loss");
  EXPECT_NE(rounded, exact);
  EXPECT_NEAR(rounded, exact, 0.01 * exact);
}

TEST(FeaturesTest, KnowsTheBytesOfASampleBeforehand) {
  const auto group = comm::single_group();
  const auto network = step::tiny::network();
  const Features features =
      tiny_features(network, loader::synthetic_collection(4, step::tiny::kClasses), *group).value();
  spec::Job job;
  job.data.image_size = step::tiny::kSize;
  job.training.phases = {{.train_from = "block3"}, {.train_from = "head", .cache_features = true}};
  const auto needs = feature_needs(job, network, at::kCPU, 4);
  ASSERT_EQ(needs.size(), 1U);
  EXPECT_EQ(needs[0].bytes(), features.bytes());
}

TEST(FeaturesTest, ARankWithoutASampleKnowsTheShape) {
  const auto group = comm::single_group();
  const auto network = step::tiny::network();
  const auto collection = loader::synthetic_collection(2, step::tiny::kClasses);
  const Features mine = tiny_features(network, collection, *group, 3).value();  // rank 0 of 3: the others have one each
  const Features all = tiny_features(network, collection, *group).value();
  EXPECT_EQ(mine.views.at(0).at(0).sizes(), all.views.at(0).at(0).sizes());
  EXPECT_EQ(mine.views[0][0].count_nonzero().item<int64_t>(), 0);
  EXPECT_EQ(mine.was_read, (std::vector<uint8_t>{0, 0}));
}

// Of two views a batch holds one of each sample: the same whenever it is asked for, another mixture in another epoch.
TEST(FeaturesTest, AnEpochTakesOneViewOfEachSample) {
  const auto group = comm::single_group();
  Features features;
  features.was_read.assign(16, 1);
  features.views = {{at::zeros({16, 2})}, {at::ones({16, 2})}};
  spec::Training training;
  training.global_batch = 16;
  const auto taken = [&](int64_t epoch) {
    return feature_batch(features, training, {.seed = 1, .epoch = epoch, .consumed = 0}, 0, *group, at::kCPU)
        .features.at(0);
  };
  const double first = taken(0).sum().item<double>();
  EXPECT_GT(first, 0);
  EXPECT_LT(first, 32);
  EXPECT_TRUE(at::equal(taken(0), taken(0)));
  EXPECT_FALSE(at::equal(taken(0), taken(1)));
}

TEST(FeaturesTest, StopsBetweenBatchesWhenAskedTo) {
  const auto group = comm::single_group();
  const auto network = step::tiny::network();
  const auto collection = loader::synthetic_collection(10, step::tiny::kClasses);
  int asked = 0;
  EXPECT_FALSE(tiny_features(network, collection, *group, 1, [&] { return ++asked == 2; }));
  EXPECT_EQ(asked, 2);
}

TEST(FeaturesTest, AnEpochOfBatchesHoldsEverySampleOnce) {
  const auto group = comm::single_group();
  const auto network = step::tiny::network();
  const auto collection = loader::synthetic_collection(10, step::tiny::kClasses);
  Features features = tiny_features(network, collection, *group).value();
  for (int64_t i = 0; i < 10; ++i) label(features, i) = i;
  spec::Training training;
  training.global_batch = 4;
  std::multiset<int64_t> seen;
  for (int64_t step = 0; step < 3; ++step) {
    const auto batch =
        feature_batch(features, training, {.seed = 1, .epoch = 5, .consumed = step * 4}, step, *group, at::kCPU);
    EXPECT_EQ(batch.global_size, step < 2 ? 4 : 2);
    for (int64_t i = 0; i < batch.rows(); ++i) seen.insert(batch.fields.at("label")[i].item<int64_t>());
  }
  EXPECT_EQ(seen, (std::multiset<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(FeaturesTest, ABalancedEpochHoldsTheSamplesThatTheLoaderWouldGive) {
  const auto group = comm::single_group();
  Features features;
  features.was_read.assign(10, 1);
  features.views = {{at::arange(10, at::kFloat).unsqueeze(1)}};
  features.balanced.emplace(std::vector<int32_t>{0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 1, 3);
  spec::Training training;
  training.global_batch = 10;
  const auto batch = feature_batch(features, training, {.seed = 3, .epoch = 2, .consumed = 0}, 0, *group, at::kCPU);
  std::vector<int64_t> taken;
  for (int64_t i = 0; i < 10; ++i) taken.push_back(batch.features.at(0)[i][0].item<int64_t>());
  EXPECT_EQ(taken, features.balanced->samples(2, {0, 10}));
  EXPECT_EQ(std::count(taken.begin(), taken.end(), 9), 5);
}

}  // namespace
}  // namespace lockstep::training
