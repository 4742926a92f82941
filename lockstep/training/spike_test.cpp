// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/spike.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/random.h"

namespace lockstep::training {
namespace {

using testing::HasSubstr;

TEST(SpikeDetectorTest, FindsARiseOfLossOrGradientNormAndNothingElse) {
  SpikeDetector detector(3);
  base::Random random(7, 0, 0);
  for (int step = 0; step < 500; ++step) {  // falls from 4 to 1, scattered by 30 %, the norm by a factor of 4
    const double loss = (4 - 3.0 * step / 500) * (0.85 + 0.3 * random.uniform());
    EXPECT_EQ(detector.check(loss, 0.5 + 1.5 * random.uniform()), "") << step;
  }
  EXPECT_THAT(detector.check(5, 1), HasSubstr("the loss rose to 5, "));
  EXPECT_THAT(detector.check(1, 40), HasSubstr("the gradient norm rose to 40, "));
  EXPECT_EQ(detector.check(1, 1), "");  // the wild ones are no part of what is usual
}

TEST(SpikeDetectorTest, ASetLearntByHeartHasNoSpikes) {
  SpikeDetector detector(3);
  for (int step = 0; step < 40; ++step) EXPECT_EQ(detector.check(0, 0), "");
  EXPECT_EQ(detector.check(1e-7, 1e-7), "");
  EXPECT_EQ(detector.check(0.02, 0.5), "");  // one sample of the batch is not sure
  for (int step = 0; step < 64; ++step) detector.check(0.01, 0.1);
  EXPECT_NE(detector.check(0.04, 0.1), "");  // it scatters again, and is checked again
}

TEST(SpikeDetectorTest, SaysNothingBeforeItKnowsWhatIsUsualAndWhenItIsOff) {
  SpikeDetector detector(2), off(0);
  for (int step = 0; step < 16; ++step) {
    EXPECT_EQ(detector.check(step == 8 ? 100 : 1, 1), "");
    EXPECT_EQ(off.check(1, 1), "");
  }
  EXPECT_NE(detector.check(100, 1), "");
  EXPECT_EQ(off.check(100, 1), "");
  SpikeDetector resumed(2);
  resumed.load(base::parse_json(detector.to_json().dump(), "test"));
  EXPECT_NE(resumed.check(100, 1), "");
  detector.forget();
  EXPECT_EQ(detector.check(100, 1), "");
}

}  // namespace
}  // namespace lockstep::training
