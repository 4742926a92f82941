// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/region.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lockstep/base/error.h"

namespace lockstep::tune {
Point draw_in_ball(size_t dimensions, base::Random& random) {
  Point direction(dimensions);
  double square = 0;
  while (square <= 0) {
    square = 0;
    for (double& one : direction) {
      one = random.normal();
      square += one * one;
    }
  }
  const double radius = std::pow(random.uniform(), 1 / static_cast<double>(dimensions)) / std::sqrt(square);
  for (double& one : direction) one *= radius;
  return direction;
}

Moments::Moments(size_t dimensions) : mean_(dimensions, 0.0), products_(dimensions * dimensions, 0.0) {}

void Moments::add(const Point& point) {
  const size_t d = mean_.size();
  ++count_;
  Point before(d);
  for (size_t i = 0; i < d; ++i) {
    before[i] = point[i] - mean_[i];
    mean_[i] += before[i] / static_cast<double>(count_);
  }
  for (size_t i = 0; i < d; ++i) {
    for (size_t j = 0; j <= i; ++j) products_[i * d + j] += before[i] * (point[j] - mean_[j]);
  }
}

std::vector<double> Moments::covariance() const {
  const size_t d = mean_.size();
  std::vector<double> all(d * d, 0.0);
  for (size_t i = 0; i < d; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      all[i * d + j] = all[j * d + i] = products_[i * d + j] / static_cast<double>(std::max<int64_t>(1, count_));
    }
  }
  return all;
}

Ellipsoid::Ellipsoid(const Moments& moments, double inflation)
    : dimensions_(moments.mean().size()), centre_(moments.mean()), root_(dimensions_ * dimensions_, 0.0) {
  constexpr double kLeastVariance = 1e-8;  // of a parameter whose range is 1
  const size_t d = dimensions_;
  const std::vector<double> covariance = moments.covariance();
  const double radius = inflation * std::sqrt(static_cast<double>(d) + 2);
  volume_ = unit_ball(static_cast<int64_t>(d));
  for (size_t i = 0; i < d; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = covariance[i * d + j] + (i == j ? kLeastVariance : 0);
      for (size_t k = 0; k < j; ++k) sum -= root_[i * d + k] * root_[j * d + k];
      root_[i * d + j] = i == j ? std::sqrt(std::max(sum, kLeastVariance)) : sum / root_[j * d + j];
    }
  }
  for (double& one : root_) one *= radius;
  for (size_t i = 0; i < d; ++i) volume_ *= root_[i * d + i];
}

bool Ellipsoid::contains(const Point& point) const {
  const size_t d = dimensions_;
  double square = 0;
  Point solved(d);
  for (size_t i = 0; i < d; ++i) {
    double sum = point[i] - centre_[i];
    for (size_t k = 0; k < i; ++k) sum -= root_[i * d + k] * solved[k];
    solved[i] = sum / root_[i * d + i];
    square += solved[i] * solved[i];
    if (square > 1) return false;
  }
  return true;
}

Point Ellipsoid::draw_step(base::Random& random, double scale) const {
  const size_t d = dimensions_;
  const Point ball = draw_in_ball(d, random);
  Point step(d, 0.0);
  for (size_t i = 0; i < d; ++i) {
    for (size_t k = 0; k <= i; ++k) step[i] += root_[i * d + k] * ball[k] * scale;
  }
  return step;
}

Point Ellipsoid::draw(base::Random& random) const {
  Point point = draw_step(random, 1);
  for (size_t i = 0; i < dimensions_; ++i) point[i] += centre_[i];
  return point;
}

double unit_ball(int64_t dimensions) {
  const double half = static_cast<double>(dimensions) / 2;
  return std::pow(std::numbers::pi, half) / std::tgamma(half + 1);
}

}  // namespace lockstep::tune
