// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/base/random.h"

namespace lockstep::tune {

using Point = std::vector<double>;  // in the unit cube

// Mean and covariance of points, added one by one.
class Moments {
 public:
  explicit Moments(size_t dimensions);
  void add(const Point& point);
  int64_t count() const { return count_; }
  const Point& mean() const { return mean_; }
  std::vector<double> covariance() const;  // [dimension, dimension]

 private:
  int64_t count_ = 0;
  Point mean_;
  std::vector<double> products_;  // sums of products of deviations
};

// The ellipsoid that a uniform distribution with these moments would fill, each half axis `inflation` times as long.
class Ellipsoid {
 public:
  // A direction in which the points hardly differ gets a little width.
  Ellipsoid(const Moments& moments, double inflation);
  double volume() const { return volume_; }
  bool contains(const Point& point) const;
  Point draw(base::Random& random) const;  // uniformly
  // A step of the shape of the region: uniformly in the ellipsoid around the origin, times `scale`.
  Point draw_step(base::Random& random, double scale) const;

 private:
  size_t dimensions_;
  Point centre_;
  std::vector<double> root_;  // lower triangle L with L L^T = covariance, times the radius
  double volume_ = 0;
};

Point draw_in_ball(size_t dimensions, base::Random& random);  // of radius 1, uniformly
// The volume of the ball of radius 1.
double unit_ball(int64_t dimensions);

}  // namespace lockstep::tune
