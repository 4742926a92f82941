// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/train/features.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <set>

#include "lockstep/step/tiny_network.h"

namespace lockstep::verbs {
namespace {

std::optional<Features> tiny_features(
    const model::Network& network, const data::Collection& collection, comm::Group& group, int64_t num_ranks = 1,
    std::function<bool()> stop = [] { return false; }) {
  data::LoaderOptions options;
  options.data.image_size = step::tiny::kSize;
  options.use = data::Use::evaluate;
  options.global_batch = 4;
  options.num_ranks = num_ranks;
  const auto loader = data::make_loader(collection, options, {.seed = 1});
  return compute_features(network, *loader, static_cast<int64_t>(collection.samples.size()), group,
                          {.to = network.index_of("head"), .stop = std::move(stop)});
}

TEST(FeaturesTest, OneRowForEverySample) {
  const auto group = comm::single_group();
  const auto network = step::tiny::network();
  const auto collection = data::synthetic_collection(10, step::tiny::kClasses);
  const Features features = tiny_features(network, collection, *group).value();
  ASSERT_EQ(features.num_samples(), 10);
  for (int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(features.targets[i].item<int64_t>(), collection.samples[static_cast<size_t>(i)].label);
  }
  EXPECT_EQ(evaluate_features(network, features, step::tiny::kClasses, *group, at::kCPU).samples(), 10);
}

TEST(FeaturesTest, ARankWithoutASampleKnowsTheShape) {
  const auto group = comm::single_group();
  const auto network = step::tiny::network();
  const auto collection = data::synthetic_collection(2, step::tiny::kClasses);
  const Features mine = tiny_features(network, collection, *group, 3).value();  // rank 0 of 3: the others have one each
  const Features all = tiny_features(network, collection, *group).value();
  EXPECT_EQ(mine.values.sizes(), all.values.sizes());
  EXPECT_EQ(mine.values.count_nonzero().item<int64_t>(), 0);
  EXPECT_EQ(mine.targets.ge(0).sum().item<int64_t>(), 0);
}

TEST(FeaturesTest, StopsBetweenBatchesWhenAskedTo) {
  const auto group = comm::single_group();
  const auto network = step::tiny::network();
  const auto collection = data::synthetic_collection(10, step::tiny::kClasses);
  int asked = 0;
  EXPECT_FALSE(tiny_features(network, collection, *group, 1, [&] { return ++asked == 2; }));
  EXPECT_EQ(asked, 2);
}

TEST(FeaturesTest, AnEpochOfBatchesHoldsEverySampleOnce) {
  const auto group = comm::single_group();
  const auto network = step::tiny::network();
  const auto collection = data::synthetic_collection(10, step::tiny::kClasses);
  Features features = tiny_features(network, collection, *group).value();
  for (int64_t i = 0; i < 10; ++i) features.targets[i].fill_(i);
  spec::Training training;
  training.global_batch = 4;
  std::multiset<int64_t> seen;
  for (int64_t step = 0; step < 3; ++step) {
    const auto batch =
        feature_batch(features, training, {.seed = 1, .epoch = 5, .consumed = step * 4}, step, *group, at::kCPU);
    EXPECT_EQ(batch.global_size, step < 2 ? 4 : 2);
    for (int64_t i = 0; i < batch.rows(); ++i) seen.insert(batch.targets[i].item<int64_t>());
  }
  EXPECT_EQ(seen, (std::multiset<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

}  // namespace
}  // namespace lockstep::verbs
