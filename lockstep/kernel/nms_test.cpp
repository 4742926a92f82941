// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernel/nms.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>

namespace lockstep::kernel {
namespace {

struct Given {
  std::vector<float> boxes;  // x1 y1 x2 y2, one after the other
  std::vector<float> scores;
  std::vector<int64_t> groups;
};

std::vector<int64_t> kept(const Given& given, double threshold, int64_t slots) {
  const auto count = static_cast<int64_t>(given.scores.size());
  const Kept result = nms(at::tensor(given.boxes).view({1, count, 4}), at::tensor(given.scores).view({1, count}),
                          at::tensor(given.groups, at::kLong).view({1, count}), threshold, slots);
  EXPECT_EQ(result.indices.sizes().vec(), (std::vector<int64_t>{1, slots}));
  std::vector<int64_t> all;
  bool ended = false;
  for (int64_t i = 0; i < slots; ++i) {
    const bool valid = result.valid[0][i].item<bool>();
    EXPECT_FALSE(valid && ended) << "empty slots stand last";
    ended = ended || !valid;
    if (valid) all.push_back(result.indices[0][i].item<int64_t>());
    if (!valid) {
      EXPECT_EQ(result.indices[0][i].item<int64_t>(), 0);
    }
  }
  return all;
}

using Indices = std::vector<int64_t>;

// Two boxes that share 90 of 110 pixels, and one beside them.
const std::vector<float> kThree{0, 0, 10, 10, 1, 0, 11, 10, 20, 20, 30, 30};

TEST(NmsTest, KeepsTheBestOfThoseThatOverlapInOrderOfTheirScores) {
  EXPECT_EQ(kept({kThree, {0.5, 0.9, 0.7}, {0, 0, 0}}, 0.5, 5), (Indices{1, 2}));
  EXPECT_EQ(kept({kThree, {0.5, 0.9, 0.7}, {0, 0, 0}}, 0.82, 5), (Indices{1, 2, 0}));
}

TEST(NmsTest, ComparesWithinAGroupOnly) {
  EXPECT_EQ(kept({kThree, {0.5, 0.9, 0.7}, {0, 1, 1}}, 0.5, 5), (Indices{1, 2, 0}));
}

TEST(NmsTest, OfEqualScoresTheFirstIsKept) {
  EXPECT_EQ(kept({kThree, {0.5, 0.5, 0.5}, {3, 3, 3}}, 0.5, 3), (Indices{0, 2}));
}

TEST(NmsTest, AnOverlapOfTheThresholdItselfIsKept) {
  const std::vector<float> halves{0, 0, 10, 10, 0, 0, 10, 5};
  EXPECT_EQ(kept({halves, {0.9, 0.8}, {0, 0}}, 0.5, 2), (Indices{0, 1}));
}

TEST(NmsTest, MoreThanTheSlotsAreLeftOutAndFewerLeaveSlotsEmpty) {
  EXPECT_EQ(kept({kThree, {0.5, 0.9, 0.7}, {0, 1, 2}}, 0.5, 2), (Indices{1, 2}));
  EXPECT_EQ(kept({kThree, {0.5, 0.9, 0.7}, {0, 1, 2}}, 0.5, 9), (Indices{1, 2, 0}));
}

TEST(NmsTest, AbsentBoxesHaveNoPart) {
  EXPECT_EQ(kept({kThree, {0.5, -1, 0.7}, {0, 0, 0}}, 0.5, 3), (Indices{2, 0}));
  EXPECT_EQ(kept({kThree, {-1, -1, -1}, {0, 0, 0}}, 0.5, 3), Indices());
  EXPECT_EQ(kept({kThree, {0.5, std::numeric_limits<float>::quiet_NaN(), 0}, {0, 0, 0}}, 0.5, 3), (Indices{0, 2}));
}

TEST(NmsTest, BoxesWithoutAreaRepeatNothing) {
  EXPECT_EQ(kept({{5, 5, 5, 5, 5, 5, 5, 5, 0, 0, 10, 10}, {0.9, 0.8, 0.7}, {0, 0, 0}}, 0.5, 3), (Indices{0, 1, 2}));
}

TEST(NmsTest, GivesTheSameBitsWhateverTheThreads) {
  const at::Tensor corner = at::rand({4, 500, 2}) * 50;
  const at::Tensor boxes = at::cat({corner, corner + at::rand({4, 500, 2}) * 30}, 2);
  const at::Tensor scores = at::rand({4, 500}), groups = at::randint(3, {4, 500}, at::kLong);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const Kept one = nms(boxes, scores, groups, 0.5, 100);
  at::set_num_threads(3);
  const Kept three = nms(boxes, scores, groups, 0.5, 100);
  at::set_num_threads(threads);
  EXPECT_TRUE(one.indices.equal(three.indices) && one.valid.equal(three.valid));
}

TEST(NmsTest, ASimulatedCallHasTheShapeOfARealOne) {
  const auto meta = at::TensorOptions(at::kMeta);
  const Kept result =
      nms(at::empty({2, 7, 4}, meta), at::empty({2, 7}, meta), at::empty({2, 7}, meta.dtype(at::kLong)), 0.5, 3);
  EXPECT_EQ(result.indices.sizes().vec(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(result.indices.scalar_type(), at::kLong);
  EXPECT_EQ(result.valid.scalar_type(), at::kBool);
}

}  // namespace
}  // namespace lockstep::kernel
