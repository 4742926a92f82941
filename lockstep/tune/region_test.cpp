// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/region.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace lockstep::tune {
namespace {

TEST(RegionTest, TheEllipsoidOfUniformPointsIsTheirs) {
  base::Random random(1);
  Moments moments(3);
  const double half_axes[] = {0.4, 0.1, 0.02};
  for (int i = 0; i < 20000; ++i) {
    Point point = draw_in_ball(3, random);
    for (size_t k = 0; k < 3; ++k) point[k] = 0.5 + half_axes[k] * point[k];
    moments.add(point);
  }
  const Ellipsoid ellipsoid(moments, 1);
  EXPECT_NEAR(ellipsoid.volume() / (unit_ball(3) * 0.4 * 0.1 * 0.02), 1, 0.03);
  EXPECT_TRUE(ellipsoid.contains({0.5, 0.5, 0.5}));
  EXPECT_TRUE(ellipsoid.contains({0.85, 0.5, 0.5}));
  EXPECT_FALSE(ellipsoid.contains({0.5, 0.5, 0.53}));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(ellipsoid.contains(ellipsoid.draw(random)));
  EXPECT_NEAR(Ellipsoid(moments, 2).volume() / ellipsoid.volume(), 8, 1e-9);
}

TEST(RegionTest, KnowsTheBall) {
  EXPECT_NEAR(unit_ball(2), std::numbers::pi, 1e-12);
  EXPECT_NEAR(unit_ball(10), 2.5501640398773455, 1e-12);
}

}  // namespace
}  // namespace lockstep::tune
