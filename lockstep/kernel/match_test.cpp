// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernel/match.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace lockstep::kernel {
namespace {

using Indices = std::vector<int64_t>;

Indices matched(const std::vector<float>& boxes, const std::vector<float>& objects, const Indices& labels,
                const MatchOptions& options) {
  const auto slots = static_cast<int64_t>(labels.size());
  const at::Tensor result = match(at::tensor(boxes).view({1, -1, 4}), at::tensor(objects).view({1, slots, 4}),
                                  at::tensor(labels, at::kLong).view({1, slots}), options);
  const auto* data = result.const_data_ptr<int64_t>();
  return {data, data + result.numel()};
}

// Against an object [0, 0, 10, 10]: all of it, 60 %, 40 %, 10 %, nothing.
const std::vector<float> kBoxes{0, 0, 10, 10, 0, 0, 10, 6, 0, 0, 10, 4, 0, 0, 10, 1, 50, 50, 60, 60};
const std::vector<float> kTwo{0, 0, 10, 10, 100, 100, 110, 110};
constexpr MatchOptions kAnchors{.low = 0.3, .high = 0.5, .best_of_object = true};

TEST(MatchTest, ThresholdsPartMatchedBetweenAndBelow) {
  const MatchOptions plain{.low = 0.3, .high = 0.5};
  EXPECT_EQ(matched(kBoxes, kTwo, {7, 0}, plain), (Indices{0, 0, kBetween, kBelow, kBelow}));
  EXPECT_EQ(matched(kBoxes, kTwo, {7, 0}, {.low = 0.4, .high = 0.6}), (Indices{0, 0, kBetween, kBelow, kBelow}));
}

TEST(MatchTest, TheBestOfAnObjectIsMatchedHoweverLittleItOverlaps) {
  const std::vector<float> poor(kBoxes.begin() + 8, kBoxes.end());  // 40 %, 10 %, nothing
  EXPECT_EQ(matched(poor, kTwo, {7, 0}, kAnchors), (Indices{0, kBelow, kBelow}));
  const std::vector<float> ties{0, 0, 10, 1, 0, 9, 10, 10, 50, 50, 60, 60};  // 10 % twice
  EXPECT_EQ(matched(ties, kTwo, {7, 0}, kAnchors), (Indices{0, 0, kBelow}));
}

TEST(MatchTest, TheBestOfOneObjectIsMatchedWithTheOneThatItOverlapsMost) {
  // The only box near the second object lies on the first one too, and more so.
  const std::vector<float> objects{0, 0, 10, 10, 0, 8, 10, 12};
  EXPECT_EQ(matched({0, 0, 10, 10, 0, 0, 10, 9}, objects, {1, 1}, kAnchors), (Indices{0, 0}));
}

TEST(MatchTest, WithoutObjectsEverythingIsBackground) {
  EXPECT_EQ(matched(kBoxes, kTwo, {0, 0}, kAnchors), Indices(5, kBelow));
}

TEST(MatchTest, AnObjectThatNothingOverlapsMatchesNothing) {
  EXPECT_EQ(matched(kBoxes, {500, 500, 510, 510}, {1}, kAnchors), Indices(5, kBelow));
  EXPECT_EQ(matched(kBoxes, {5, 5, 5, 5}, {1}, kAnchors), Indices(5, kBelow));  // without area
}

TEST(MatchTest, EmptySlotsAreNoObjectsWhateverTheyHold) {
  EXPECT_EQ(matched(kBoxes, {0, 0, 10, 10, 50, 50, 60, 60}, {0, 3}, kAnchors),
            (Indices{kBelow, kBelow, kBelow, kBelow, 1}));
}

TEST(MatchTest, GivesTheSameBitsWhateverTheThreadsAndSharesBoxesOverImages) {
  const auto boxes = [](int64_t images, int64_t count) {
    const at::Tensor corner = at::rand({images, count, 2}) * 200;
    return at::cat({corner, corner + at::rand({images, count, 2}) * 40 + 1}, 2);
  };
  const at::Tensor anchors = boxes(1, 20000), objects = boxes(2, 9), labels = at::randint(3, {2, 9}, at::kLong);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor one = match(anchors, objects, labels, kAnchors);
  at::set_num_threads(3);
  const at::Tensor three = match(anchors, objects, labels, kAnchors);
  at::set_num_threads(threads);
  EXPECT_TRUE(one.equal(three));
  EXPECT_TRUE(one.equal(match(anchors.expand({2, -1, -1}), objects, labels, kAnchors)));
}

}  // namespace
}  // namespace lockstep::kernel
