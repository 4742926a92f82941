// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/feeding.h"

#include <gtest/gtest.h>

namespace lockstep::run {
namespace {

TEST(FeedingTest, OnlyAGpuIsFedAndNotInSinglePrecision) {
  EXPECT_TRUE(is_fed(spec::Pixels::bf16, /*on_gpu=*/true));
  EXPECT_TRUE(is_fed(spec::Pixels::uint8, /*on_gpu=*/true));
  EXPECT_FALSE(is_fed(spec::Pixels::fp32, /*on_gpu=*/true));
  EXPECT_FALSE(is_fed(spec::Pixels::bf16, /*on_gpu=*/false));
}

}  // namespace
}  // namespace lockstep::run
