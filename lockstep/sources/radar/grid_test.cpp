// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/radar/grid.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::sources {
namespace {

// 10 dBZ everywhere but `strong`, towards the east from 20 km on.
PolarSweep turned(double strong) {
  PolarSweep sweep;
  sweep.elevation = 0.5;
  sweep.first_gate = 500;
  sweep.gates = 60;
  for (int64_t ray = 0; ray < 360; ++ray) {
    const double azimuth = std::fmod(static_cast<double>(ray) + 200.5, 360);  // the first ray is not north
    sweep.azimuths.push_back(azimuth);
    for (int64_t gate = 0; gate < sweep.gates; ++gate) {
      const bool east = azimuth > 45 && azimuth < 135 && gate >= 20;
      sweep.values.push_back(static_cast<float>(east ? strong : 10));
    }
  }
  return sweep;
}

TEST(GridTest, TheBeamBends) {
  EXPECT_NEAR(height_of_beam(100e3, 0.5), 1460, 10);
  EXPECT_NEAR(height_of_beam(230e3, 0.5), 5120, 30);
  for (const double range : {1e3, 50e3, 230e3}) {
    for (const double elevation : {0.0, 0.5, 19.5})
      EXPECT_NEAR(range_over_ground(ground_distance(range, elevation), elevation), range, 1e-4);
  }
}

TEST(GridTest, NorthIsUpAndEastIsRight) {
  const GridShape shape{100, 1000};
  for (const Gridding how : {Gridding::nearest, Gridding::mean}) {
    const auto cells = grid_sweep(turned(40), shape, how);
    const auto at = [&](int64_t row, int64_t column) { return cells[static_cast<size_t>(row * 100 + column)]; };
    EXPECT_FLOAT_EQ(at(50, 90), 40);
    EXPECT_FLOAT_EQ(at(50, 10), 10);
    EXPECT_FLOAT_EQ(at(10, 50), 10);
    EXPECT_FLOAT_EQ(at(90, 50), 10);
    EXPECT_FLOAT_EQ(at(50, 60), 10);
    EXPECT_TRUE(std::isnan(at(0, 0)));  // 70 km off
  }
}

TEST(GridTest, TheMeanIsThatOfZ) {
  PolarSweep sweep = turned(10);
  for (size_t i = 0; i < sweep.values.size(); ++i) sweep.values[i] = i % 2 == 0 ? 40 : kNoEcho;
  const auto cells = grid_sweep(sweep, {2, 20000}, Gridding::mean);
  EXPECT_NEAR(cells[0], 10 * std::log10(10000 / 2.0), 0.1);  // half of the gates have 40 dBZ, the others nothing
}

TEST(GridTest, WhereRaysAreMissingNothingWasMeasured) {
  PolarSweep sweep = turned(40);
  for (int64_t ray = 359; ray >= 0; --ray) {
    if (sweep.azimuths[static_cast<size_t>(ray)] < 180) continue;
    sweep.azimuths.erase(sweep.azimuths.begin() + ray);
    sweep.values.erase(sweep.values.begin() + ray * sweep.gates, sweep.values.begin() + (ray + 1) * sweep.gates);
  }
  const auto cells = grid_sweep(sweep, {100, 1000}, Gridding::nearest);
  EXPECT_TRUE(std::isnan(cells[50 * 100 + 20]));
  EXPECT_FALSE(std::isnan(cells[50 * 100 + 80]));
}

TEST(GridTest, ACompositeHasTheStrongestEcho) {
  const PolarSweep weak = turned(10), strong = turned(45);
  const double apart = 60e3 / kEarthRadius * 180 / 3.14159265358979 / std::cos(47.5 * 3.14159265358979 / 180);
  const auto cells = composite({{&weak, 47.5, -122.5}, {&strong, 47.5, -122.5 - apart}}, 47.5, -122.5, {160, 1000});
  const auto at = [&](int64_t row, int64_t column) { return cells[static_cast<size_t>(row * 160 + column)]; };
  EXPECT_FLOAT_EQ(at(80, 55), 45);   // 35 km east of the second radar, 25 km west of the first
  EXPECT_FLOAT_EQ(at(80, 110), 10);  // out of the second one's reach
  EXPECT_TRUE(std::isnan(at(0, 159)));
  EXPECT_THROW(composite({{&weak, kNotMeasured, 0}}, 0, 0, {10, 1000}), base::Error);
}

}  // namespace
}  // namespace lockstep::sources
