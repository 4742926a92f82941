// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/partition.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::tune {
namespace {

Evaluate labelled(const std::function<std::string(const Point&)>& label) {
  return [label](const std::vector<Point>& points) {
    std::vector<std::string> labels;
    labels.reserve(points.size());
    for (const auto& point : points) labels.push_back(label(point));
    return labels;
  };
}

// A box, a thin slab, and the rest.
std::string box_and_slab(const Point& point) {
  bool box = true;
  for (const double one : point) box &= one < 0.5;
  if (box) return "box";
  return point[0] > 0.9 && point[0] < 0.91 ? "slab" : "rest";
}

TEST(PartitionTest, RecoversVolumesWithinTheirIntervals) {
  const spec::Partition settings{.starts = 256, .chains = 4, .points = 4000};
  int held = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Partitioned found = partition_space(3, settings, seed, labelled(box_and_slab));
    ASSERT_EQ(found.regions.size(), 3U) << seed;
    bool all = true;
    for (const auto& region : found.regions) {
      const double truth = region.label == "box" ? 0.125 : region.label == "slab" ? 0.01 : 0.865;
      all &= region.low <= truth && truth <= region.high;
      EXPECT_LT(region.high - region.low, 0.08) << region.label;
    }
    held += all ? 1 : 0;
    EXPECT_EQ(found.regions[1].label, "box");
    EXPECT_NEAR(found.regions[1].centre[1], 0.25, 0.02);
  }
  EXPECT_GE(held, 9);
}

TEST(PartitionTest, SaysWhatItMayHaveMissed) {
  Partitioned found;
  found.uniform = 6000;
  EXPECT_NEAR(found.missed(1e-3), std::pow(1 - 1e-3, 6000), 1e-12);
  EXPECT_NEAR(found.missed(found.found_volume(0.95)), 0.05, 1e-9);
}

TEST(PartitionTest, AsksTheSamePointsAgain) {
  const spec::Partition settings{.starts = 64, .chains = 2, .points = 500};
  std::vector<Point> first;
  std::vector<Point> second;
  const auto ask = [](std::vector<Point>& seen) {
    return [&seen](const std::vector<Point>& points) {
      std::vector<std::string> labels;
      for (const auto& point : points) {
        seen.push_back(point);
        labels.push_back(box_and_slab(point));
      }
      return labels;
    };
  };
  partition_space(2, settings, 4, ask(first));
  partition_space(2, settings, 4, ask(second));
  EXPECT_EQ(first, second);
}

TEST(PartitionTest, RefusesAProgramThatLabelsEverythingDifferently) {
  int count = 0;
  EXPECT_THROW(partition_space(2, {.starts = 2048}, 1, labelled([&](const Point&) { return std::to_string(++count); })),
               base::Error);
}

}  // namespace
}  // namespace lockstep::tune
