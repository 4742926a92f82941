// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/sampling.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <set>

namespace lockstep::model {
namespace {

using Numbers = std::vector<int64_t>;

class Nothing final : public Block {
 public:
  Nothing() : Block("nothing") {}
  Bundle run(const Bundle& input, Mode /*mode*/) override { return input; }
};

at::Tensor row(const Numbers& values) {
  return at::tensor(values, at::kLong).unsqueeze(0);
}

Numbers chosen(const Sampled& sampled) {
  Numbers all;
  for (int64_t i = 0; i < sampled.indices.size(1); ++i) {
    if (sampled.valid[0][i].item<bool>()) all.push_back(sampled.indices[0][i].item<int64_t>());
  }
  return all;
}

Numbers first_of(const Numbers& labels, const SampleSizes& sizes) {
  const Nothing block;
  const at::Tensor given = row(labels);
  const Sampled sampled = sample_balanced(given, sampling_keys(block, given, spec::Sampler::first), sizes);
  EXPECT_EQ(sampled.indices.sizes().vec(), (Numbers{1, sizes.slots}));
  EXPECT_EQ(sampled.valid.sizes().vec(), (Numbers{1, sizes.slots}));
  return chosen(sampled);
}

TEST(SamplingTest, PositiveOnesStandFirstAndNegativeOnesFillTheRest) {
  EXPECT_EQ(first_of({0, 2, -1, 0, 1, 0, 0}, {.slots = 4, .most_positive = 2}), (Numbers{1, 4, 0, 3}));
}

TEST(SamplingTest, NoMorePositiveOnesThanAllowed) {
  EXPECT_EQ(first_of({1, 1, 1, 0, 0, 0}, {.slots = 4, .most_positive = 1}), (Numbers{0, 3, 4, 5}));
}

TEST(SamplingTest, FewerThanTheSlotsLeaveSlotsEmpty) {
  EXPECT_EQ(first_of({1, 0, -1}, {.slots = 5, .most_positive = 2}), (Numbers{0, 1}));
  EXPECT_EQ(first_of({1, 1, 1}, {.slots = 5, .most_positive = 2}), (Numbers{0, 1}));
  EXPECT_EQ(first_of({0, 0, -1}, {.slots = 2, .most_positive = 1}), (Numbers{0, 1}));
  EXPECT_EQ(first_of({-1, -1, -1}, {.slots = 2, .most_positive = 1}), Numbers());
}

TEST(SamplingTest, TheRandomChoiceIsOfTheBlocksGenerator) {
  Nothing block;
  const at::Tensor labels = row(Numbers(1000, 0));
  const auto draw = [&](uint64_t seed) {
    block.random = at::detail::createCPUGenerator(seed);
    return chosen(sample_balanced(labels, sampling_keys(block, labels, spec::Sampler::random),
                                  {.slots = 10, .most_positive = 5}));
  };
  const Numbers first = draw(1);
  EXPECT_EQ(first, draw(1));
  EXPECT_NE(first, draw(2));
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 10U);
}

}  // namespace
}  // namespace lockstep::model
