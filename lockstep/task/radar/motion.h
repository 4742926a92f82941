// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::task {

// A field of numbers, [height, width].
struct Plane {
  int64_t height = 0, width = 0;
  std::vector<float> values = {};

  Plane() = default;
  Plane(int64_t plane_height, int64_t plane_width, float value = 0)
      : height(plane_height), width(plane_width), values(static_cast<size_t>(plane_height * plane_width), value) {}
  float& at(int64_t y, int64_t x) { return values[static_cast<size_t>(y * width + x)]; }
  float at(int64_t y, int64_t x) const { return values[static_cast<size_t>(y * width + x)]; }
  // Between the cells, bilinear; the edge goes on outside.
  float between(double y, double x) const;
  bool operator==(const Plane&) const = default;
};

struct Motion {
  Plane across, down;  // cells a frame
};

// Where echoes move, from frame to frame: corners (Shi and Tomasi) followed by the pyramidal method of Lucas and
// Kanade, without those that move unlike their neighbours, averaged in cells, and spread over the grid by inverse
// distance. The settings are those of pysteps' dense_lucaskanade; windows shrink with small grids. Fields are in dB of
// rain rate, dry is -15. No corner: no motion. REQUIRES: two frames or more, of one size
Motion find_motion(std::span<const Plane> frames);

// The last frame carried on for `count` frames: each cell is looked up where it came from (semi-Lagrangian, backward,
// midpoint rule, bilinear). What comes from outside is `outside`.
std::vector<Plane> carry_on(const Plane& last, const Motion& motion, int64_t count, float outside);

}  // namespace lockstep::task
