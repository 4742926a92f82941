// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lockstep/forecast/recording.h"
#include "lockstep/forecast/roofline.h"
#include "lockstep/spec/job.h"

namespace lockstep::forecast {

// Which family of kernels an operator is served by. Convolutions differ by their kind; the rest is plain.
LOCKSTEP_CHOICE(KernelFamily, plain, pointwise, spatial, depthwise, grouped, stem)

// Where an operator stands among those of its class. Distances between these say how alike two operators run: `x` is
// in octaves, weighted by how much an octave changes the efficiency.
struct Coordinates {
  std::array<double, 7> x = {};
  KernelFamily family = KernelFamily::plain;
  NumberType type = NumberType::fp32;
  Layout layout = Layout::channels_last;
  uint64_t name = 0;  // a hash
};

// The roofline time by which an operator's efficiency is told. What is shorter than 10 ns there is latency alone,
// whatever its size: the efficiency of two values is not that of two thousand, but both take as long.
double size_seconds(const Operator& op, const Rates& rates);

Coordinates coordinates_of(const Operator& op, const Rates& rates, Layout layout);
double distance_squared(const Coordinates& a, const Coordinates& b);

struct SamplePoint {
  Coordinates at;
  double log_efficiency = 0;
};

// From the nearest samples, weighted by the fourth power of nearness: a sample that is met is given back; between
// samples of smaller and of larger size the logarithm runs along a line whose slope never lets a larger operator take
// less time; the result never leaves the range of the samples. REQUIRES: some points.
double interpolate(const std::vector<SamplePoint>& points, const Coordinates& at);

// The same from points in order, of which few are looked at: those of one kernel lie together, by size.
class SortedPoints {
 public:
  SortedPoints() = default;
  explicit SortedPoints(std::vector<SamplePoint> points);

  double interpolate(const Coordinates& at) const;  // REQUIRES: some points

 private:
  struct Kernel {
    size_t begin = 0;  // its points, in points_
    size_t end = 0;
  };
  std::vector<SamplePoint> points_;
  std::vector<Kernel> kernels_;
};

KernelFamily family_of(const Operator& op);

}  // namespace lockstep::forecast
