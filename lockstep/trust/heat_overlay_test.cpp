// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/heat_overlay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace lockstep::trust {
namespace {

TEST(HeatOverlayTest, ColoursWhatIsHotAndLeavesTheRest) {
  image::Image grey(4, 2);
  std::fill(grey.pixels.begin(), grey.pixels.end(), uint8_t{100});
  const std::vector<float> map{0, 1, 0, 0, 0.3F, 0, 0, 0};
  const image::Image over = heat_overlay(grey, map, 1);
  EXPECT_EQ(over.row(0)[0], 100);
  EXPECT_GT(over.row(0)[3], 150);  // red
  EXPECT_LT(over.row(0)[5], 60);
  EXPECT_GT(over.row(1)[2], over.row(1)[0]);  // a little: blue
  EXPECT_EQ(heat_overlay(grey, map).height, 224);
}

}  // namespace
}  // namespace lockstep::trust
