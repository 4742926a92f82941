// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

// How unlike the known samples one is. Every score is high for what is known.
namespace lockstep::trust {

// T * logsumexp(logits / T) (Liu et al., "Energy-based out-of-distribution detection", 2020).
double energy_score(std::span<const float> logits, double temperature = 1);

// Rows of features with their classes: [rows, width].
struct FeatureRows {
  int64_t width = 0;
  std::span<const float> features;
  std::span<const int64_t> labels;
  int64_t classes = 0;

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  std::span<const float> row(int64_t i) const {
    return features.subspan(static_cast<size_t>(i * width), static_cast<size_t>(width));
  }
};

// Minus the squared Mahalanobis distance to the nearest class mean, with one covariance for all classes (Lee et al.
// 2018) that is shrunk as Ledoit and Wolf (2004) have it: features are often more than there are rows.
struct ClassGaussians {
  int64_t width = 0;
  std::vector<double> factor;  // [width, width], lower: the Cholesky factor of the covariance
  std::vector<double> means;   // [classes with rows, width], each divided by the factor

  double score(std::span<const float> feature) const;
};
// Of `kMostCovarianceRows` rows at most, evenly spread, for the covariance. REQUIRES: rows.
ClassGaussians fit_gaussians(const FeatureRows& rows);
constexpr int64_t kMostCovarianceRows = 10000;

struct Neighbour {
  int64_t row = 0;
  double distance = 0;  // between the two as unit vectors, 0 to 2
};
// The `count` nearest, nearest first.
std::vector<Neighbour> nearest_rows(const FeatureRows& rows, std::span<const float> feature, int64_t count);
// Minus the distance of the k-th nearest row (Sun et al., "Out-of-distribution detection with deep nearest neighbors",
// 2022). The last one where there are fewer.
double neighbour_score(const FeatureRows& rows, std::span<const float> feature, int64_t k);

// A known sample scores below it with a probability of `rate` at most; `known`: scores of known samples, ascending.
// None: these are too few for it, fewer than 1 / rate - 1.
std::optional<double> alarm_threshold(std::span<const double> known, double rate);

}  // namespace lockstep::trust
