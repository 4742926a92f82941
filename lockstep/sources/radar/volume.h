// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace lockstep::sources {

constexpr float kNotMeasured = std::numeric_limits<float>::quiet_NaN();
constexpr float kNoEcho = -std::numeric_limits<float>::infinity();  // measured, and below what the radar can tell

// One turn of the antenna: reflectivity along rays, [rays, gates] in dBZ, kNoEcho or kNotMeasured.
struct PolarSweep {
  int64_t number = 0;          // as the file counts them
  double elevation = 0;        // degrees, mean of the rays
  double seconds = 0;          // since 1970, of its first ray
  double first_gate = 0;       // metres from the antenna to the centre of the first gate
  double gate_spacing = 1000;  // metres
  int64_t gates = 0;
  bool has_velocity = false, has_zdr = false;
  std::vector<double> azimuths = {};  // degrees from north, of each ray's centre
  std::vector<float> values = {};

  int64_t rays() const { return static_cast<int64_t>(azimuths.size()); }
  float at(int64_t ray, int64_t gate) const { return values[static_cast<size_t>(ray * gates + gate)]; }
};

// What a file of a radar holds: its sweeps, as far as they have reflectivity.
struct RadarVolume {
  std::string site;
  double seconds = 0;  // since 1970
  double latitude = kNotMeasured, longitude = kNotMeasured, altitude = 0;
  std::vector<PolarSweep> sweeps = {};
  std::string fault =
      {};  // the first thing that is wrong with the file ("cut off: ..."); what stood before it is there

  // The sweep nearest the ground that is all around: of two of one angle the one that was made for reflectivity (with
  // ZDR, without velocity), then the first. User error, which names `source`, where there is none.
  const PolarSweep& lowest(const std::string& source) const;
};

// "2024-05-21 21:52:36"
std::string moment_text(double seconds);
// Seconds since 1970 of a date (20240521) and a time of day (215236), both in UTC. NaN: they are none.
double moment_of(const std::string& date, const std::string& time);

}  // namespace lockstep::sources
