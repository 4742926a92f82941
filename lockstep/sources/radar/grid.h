// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/sources/radar/volume.h"

namespace lockstep::sources {

// A square of `side` x `side` cells around a place, row 0 in the north.
struct GridShape {
  int64_t side = 128;
  double cell = 1000;  // metres

  bool operator==(const GridShape&) const = default;
};

enum class Gridding {
  nearest,  // the gate nearest to the centre of a cell
  mean      // the mean of Z (not of dBZ) over the gates of a cell; nearest where there is none
};

// A beam through an atmosphere that bends it: a straight line over an earth of 4/3 its radius.
constexpr double kEarthRadius = 6371000, kBentRadius = kEarthRadius * 4 / 3;
double height_of_beam(double range, double elevation);               // metres above the antenna; degrees
double ground_distance(double range, double elevation);              // metres along the ground
double range_over_ground(double ground_distance, double elevation);  // its inverse

// Of frames that are a grid already. User error that names `source`: no cell, or more than a sample can hold.
void check_grid(int64_t height, int64_t width, const std::string& source);

// [side, side] in dBZ, kNoEcho or kNotMeasured, around the radar.
std::vector<float> grid_sweep(const PolarSweep& sweep, const GridShape& shape, Gridding how);

// Several radars on one grid around (latitude, longitude): the strongest of what they see in a cell. User error for a
// radar without a position.
struct PlacedSweep {
  const PolarSweep* sweep = nullptr;
  double latitude = 0, longitude = 0;
};
std::vector<float> composite(const std::vector<PlacedSweep>& sweeps, double latitude, double longitude,
                             const GridShape& shape);

}  // namespace lockstep::sources
