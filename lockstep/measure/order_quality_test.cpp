// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/order_quality.h"

#include <gtest/gtest.h>

namespace lockstep::measure {
namespace {

TEST(OrderQualityTest, TellsAShuffleFromNoneAtAll) {
  std::vector<int32_t> labels;
  for (int i = 0; i < 20000; ++i) labels.push_back(i / 2000);  // stored class by class: the worst case
  loader::Sequence full(loader::Sequence::Kind::full, 20000, 1), none(loader::Sequence::Kind::in_order, 20000, 1);
  const OrderBench bench{.batch = 100, .epochs = 3};
  const OrderQuality good = measure_order("full", full, labels, bench),
                     bad = measure_order("none", none, labels, bench);
  EXPECT_NEAR(good.displacement, 1.0 / 3, 0.01);
  EXPECT_NEAR(good.neighbours, 50 * 100.0 / 20000, 0.05);
  EXPECT_NEAR(good.met_again, 1, 0.35);
  EXPECT_NEAR(good.class_deviation, 1, 0.1);
  EXPECT_GT(good.classes, 9.9);
  EXPECT_EQ(bad.displacement, 0);
  EXPECT_GT(bad.neighbours, 30);
  EXPECT_GT(bad.met_again, 100);
  EXPECT_GT(bad.class_deviation, 50);
  EXPECT_EQ(bad.classes, 1);
}

}  // namespace
}  // namespace lockstep::measure
