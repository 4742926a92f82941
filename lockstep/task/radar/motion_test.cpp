// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/radar/motion.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::task {
namespace {

// Cells of rain that all move by (across, down) a frame.
Plane rain_at(double across, double down, int frame, int64_t side = 96) {
  Plane plane(side, side, -15);
  for (const auto& [x, y, radius] :
       {std::array{20.0, 30.0, 6.0}, {60.0, 25.0, 5.0}, {40.0, 60.0, 8.0}, {70.0, 70.0, 4.0}}) {
    for (int64_t row = 0; row < side; ++row) {
      for (int64_t column = 0; column < side; ++column) {
        const double dx = static_cast<double>(column) - x - across * frame,
                     dy = static_cast<double>(row) - y - down * frame;
        const auto value = static_cast<float>(30 * std::exp(-(dx * dx + dy * dy) / (2 * radius * radius)) - 15);
        plane.at(row, column) = std::max(plane.at(row, column), value);
      }
    }
  }
  return plane;
}

TEST(MotionTest, FindsHowRainMoves) {
  for (const auto& [across, down] :
       {std::pair(2.0, 1.0), std::pair(-1.5, 2.5), std::pair(0.0, 0.0), std::pair(5.0, -4.0)}) {
    const std::vector<Plane> frames{rain_at(across, down, 0), rain_at(across, down, 1), rain_at(across, down, 2)};
    const Motion motion = find_motion(frames);
    EXPECT_NEAR(motion.across.at(48, 48), across, 0.2);
    EXPECT_NEAR(motion.down.at(48, 48), down, 0.2);
  }
}

TEST(MotionTest, NothingToSeeIsNoMotion) {
  const std::vector<Plane> frames{Plane(32, 32, -15), Plane(32, 32, -15)};
  EXPECT_EQ(find_motion(frames).across, Plane(32, 32, 0));
}

TEST(MotionTest, CarriesTheLastFrameOn) {
  const Plane last = rain_at(3, -2, 0);
  Motion motion{Plane(96, 96, 3), Plane(96, 96, -2)};
  const auto frames = carry_on(last, motion, 4, -15);
  ASSERT_EQ(frames.size(), 4U);
  EXPECT_NEAR(frames[3].at(60 - 8, 40 + 12), last.at(60, 40), 1e-4);
  EXPECT_EQ(frames[3].at(95, 0), -15);  // comes from outside
  EXPECT_EQ(carry_on(last, {Plane(96, 96), Plane(96, 96)}, 2, 0)[1], last);
}

}  // namespace
}  // namespace lockstep::task
