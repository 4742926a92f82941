// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/radar/rain_world.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::sources {
namespace {

int64_t wet(const RadarVolume& volume) {
  const auto& values = volume.sweeps[0].values;
  return std::count_if(values.begin(), values.end(), [](float value) { return value > 20; });
}

TEST(RainWorldTest, IsTheSameForTheSameSeed) {
  const RainWorld world{.seed = 2}, other{.seed = 3};
  EXPECT_EQ(world.volume(40).sweeps[0].values, world.volume(40).sweeps[0].values);
  EXPECT_NE(world.volume(40).sweeps[0].values, other.volume(40).sweeps[0].values);
}

TEST(RainWorldTest, EventsHaveAPauseBetweenThem) {
  const RainWorld world;
  EXPECT_EQ(world.seconds_at(35) - world.seconds_at(34), 300);
  EXPECT_EQ(world.seconds_at(36) - world.seconds_at(35), 300 + 3600);
}

TEST(RainWorldTest, ItRainsAndChanges) {
  const RainWorld world;
  for (const int64_t index : {5, 40, 100}) {
    const RadarVolume now = world.volume(index), later = world.volume(index + 6);
    EXPECT_GT(wet(now), 500);
    EXPECT_NE(now.sweeps[0].values, later.sweeps[0].values);
  }
}

}  // namespace
}  // namespace lockstep::sources
