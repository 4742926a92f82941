// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/loss_scale.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::step {

TEST(LossScaleTest, HalvesOnAnOverflowAndDoublesAfterTwoThousandGoodSteps) {
  LossScale scale(true);
  EXPECT_EQ(scale.value(), 65536);
  scale.update(false);
  EXPECT_EQ(scale.value(), 32768);
  for (int i = 0; i < 1999; ++i) scale.update(true);
  EXPECT_EQ(scale.value(), 32768);
  scale.update(true);
  EXPECT_EQ(scale.value(), 65536);
  for (int i = 0; i < 1999; ++i) scale.update(true);
  scale.update(false);  // the good steps in a row end here
  for (int i = 0; i < 1999; ++i) scale.update(true);
  EXPECT_EQ(scale.value(), 32768);
}

TEST(LossScaleTest, EndsAtOneWhereAnOverflowIsNoLongerItsFault) {
  LossScale scale(true);
  for (int i = 0; i < 40; ++i) scale.update(false);
  EXPECT_EQ(scale.value(), 1);
  EXPECT_FALSE(scale.can_shrink());
}

TEST(LossScaleTest, GoesOnFromItsStateAsIfNeverStopped) {
  LossScale one(true);
  one.update(false);
  for (int i = 0; i < 1500; ++i) one.update(true);
  LossScale two(true);
  two.load_state(one.state());
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(one.value(), two.value());
    one.update(true);
    two.update(true);
  }
  EXPECT_EQ(two.value(), 65536);
  EXPECT_THROW(two.load_state({}), base::Error);
}

TEST(LossScaleTest, UnusedItIsOneAndLeavesNoState) {
  LossScale scale(false);
  scale.update(false);
  EXPECT_EQ(scale.value(), 1);
  EXPECT_FALSE(scale.can_shrink());
  EXPECT_TRUE(scale.state().empty());
  scale.load_state({});
}

}  // namespace lockstep::step
