// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/radar/volume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::sources {
namespace {

PolarSweep sweep_at(double elevation, int64_t rays, bool velocity, bool zdr) {
  PolarSweep sweep;
  sweep.elevation = elevation;
  sweep.gates = 1;
  sweep.has_velocity = velocity;
  sweep.has_zdr = zdr;
  for (int64_t i = 0; i < rays; ++i) {
    sweep.azimuths.push_back(static_cast<double>(i));
    sweep.values.push_back(1);
  }
  return sweep;
}

TEST(RadarVolumeTest, TheLowestSweepIsTheOneThatWasMadeForReflectivity) {
  RadarVolume volume;
  volume.sweeps = {sweep_at(0.48, 360, true, false), sweep_at(0.53, 360, false, true), sweep_at(0.9, 360, false, true)};
  EXPECT_EQ(&volume.lowest("x"), &volume.sweeps[1]);
}

TEST(RadarVolumeTest, AMissingSweepIsNamed) {
  RadarVolume volume;
  volume.fault = "cut off in record 3";
  volume.sweeps = {sweep_at(0.5, 120, false, true), sweep_at(1.5, 360, false, true)};
  try {
    (void)volume.lowest("KATX");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_THAT(error.what(), testing::HasSubstr("KATX: its lowest sweep is missing or in part: 120 rays"));
    EXPECT_THAT(error.what(), testing::HasSubstr("cut off in record 3"));
  }
}

TEST(RadarVolumeTest, MomentsAreThoseOfTheCalendar) {
  EXPECT_EQ(moment_of("20240521", "215236"), 1716328356);
  EXPECT_EQ(moment_text(1716328356), "2024-05-21 21:52:36");
  EXPECT_EQ(moment_of("20080602", "1600"), 1212422400);
  for (const char* date : {"", "2024052", "2024-5-2", "20241521", "abcdefgh"})
    EXPECT_TRUE(std::isnan(moment_of(date, "1200"))) << date;
  EXPECT_EQ(moment_text(NAN), "no time");
}

}  // namespace
}  // namespace lockstep::sources
