// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/loader_rate.h"

#include <gtest/gtest.h>

namespace lockstep::forecast {
namespace {

const SampleSize kSmall{.stored_bytes = 17e3, .stored_pixels = 256 * 256, .image_pixels = 224 * 224};

TEST(LoaderRateTest, GivesTheMeasuredRateOfOneCore) {
  const LoaderRate one = forecast_loader(kSmall, 1, 0, 0, 2000);
  EXPECT_NEAR(one.per_core, 2450, 50);
  EXPECT_TRUE(one.keeps_up);
  EXPECT_FALSE(one.reads_bound);
  EXPECT_NEAR(one.cores_needed, 2000 / one.per_core, 1e-9);
}

TEST(LoaderRateTest, ScalesWithCoresAndClock) {
  const LoaderRate eight = forecast_loader(kSmall, 8, 1.3, 0, 1e6);
  EXPECT_NEAR(eight.samples, 8 * 2450 / 2.0, 250);
  EXPECT_FALSE(eight.keeps_up);
}

TEST(LoaderRateTest, TheFileSystemCanBeTheLimit) {
  const LoaderRate slow = forecast_loader(kSmall, 8, 0, 17e6, 2000);
  EXPECT_TRUE(slow.reads_bound);
  EXPECT_DOUBLE_EQ(slow.samples, 1000);
  EXPECT_DOUBLE_EQ(slow.read_rate, 17e6);
  EXPECT_FALSE(slow.keeps_up);
}

TEST(LoaderRateTest, ACheckpointTakesItsBytes) {
  EXPECT_DOUBLE_EQ(checkpoint_seconds(12e9, 3e9), 4);
}

}  // namespace
}  // namespace lockstep::forecast
