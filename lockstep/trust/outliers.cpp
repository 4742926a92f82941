// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/outliers.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/base/error.h"

namespace lockstep::trust {
namespace {

// [classes, width] and the rows of each.
struct ClassMeans {
  std::vector<double> sums;
  std::vector<int64_t> counts;
};

ClassMeans class_means(const FeatureRows& rows) {
  ClassMeans all{std::vector<double>(static_cast<size_t>(rows.classes * rows.width)),
                 std::vector<int64_t>(static_cast<size_t>(rows.classes))};
  const auto width = static_cast<size_t>(rows.width);
  for (int64_t i = 0; i < rows.size(); ++i) {
    const auto label = static_cast<size_t>(rows.labels[static_cast<size_t>(i)]);
    ++all.counts[label];
    for (size_t d = 0; d < width; ++d) all.sums[label * width + d] += rows.row(i)[d];
  }
  for (size_t k = 0; k < all.counts.size(); ++k) {
    const auto count = static_cast<double>(std::max<int64_t>(1, all.counts[k]));
    for (size_t d = 0; d < width; ++d) all.sums[k * width + d] /= count;
  }
  return all;
}

// The shrunk covariance of the rows about the means of their classes: its lower triangle.
std::vector<double> shrunk_covariance(const FeatureRows& rows, const ClassMeans& means) {
  const auto width = static_cast<size_t>(rows.width);
  const int64_t step = (rows.size() + kMostCovarianceRows - 1) / kMostCovarianceRows;
  std::vector<double> covariance(width * width), rest(width);
  double count = 0, fourth = 0;  // fourth: sum over the rows of the squared norm, squared
  for (int64_t i = 0; i < rows.size(); i += step, ++count) {
    const auto row = rows.row(i);
    const auto label = static_cast<size_t>(rows.labels[static_cast<size_t>(i)]);
    double square = 0;
    for (size_t d = 0; d < width; ++d) {
      rest[d] = row[d] - means.sums[label * width + d];
      square += rest[d] * rest[d];
    }
    fourth += square * square;
    for (size_t a = 0; a < width; ++a) {
      const double factor = rest[a];
      if (factor == 0) continue;
      double* line = covariance.data() + a * width;
      for (size_t b = 0; b <= a; ++b) line[b] += factor * rest[b];
    }
  }
  double trace = 0, squares = 0;
  for (size_t a = 0; a < width; ++a) {
    for (size_t b = 0; b <= a; ++b) {
      double& value = covariance[a * width + b];
      value /= count;
      squares += (a == b ? 1 : 2) * value * value;
    }
    trace += covariance[a * width + a];
  }
  const auto dims = static_cast<double>(width);
  const double mean = trace / dims;
  const double spread = (squares - 2 * mean * trace + dims * mean * mean) / dims;
  const double noise = std::min((fourth / count - squares) / (dims * count), spread);
  const double shrinkage = noise > 0 && spread > 0 ? noise / spread : 0;
  for (size_t a = 0; a < width; ++a) {
    for (size_t b = 0; b <= a; ++b) covariance[a * width + b] *= 1 - shrinkage;
    // A direction in which nothing varies would make every new value infinitely far.
    covariance[a * width + a] += shrinkage * mean + 1e-12 * mean + std::numeric_limits<double>::min();
  }
  return covariance;
}

// In place: the lower triangle of a positive definite matrix becomes its Cholesky factor.
void cholesky(std::vector<double>& matrix, size_t width) {
  for (size_t a = 0; a < width; ++a) {
    double* line = matrix.data() + a * width;
    for (size_t b = 0; b <= a; ++b) {
      const double* other = matrix.data() + b * width;
      double value = line[b];
      for (size_t k = 0; k < b; ++k) value -= line[k] * other[k];
      line[b] = a == b ? std::sqrt(std::max(value, 1e-300)) : value / other[b];
    }
  }
}

// factor^-1 * values, in place.
void divide_by_factor(const std::vector<double>& factor, std::span<double> values) {
  for (size_t a = 0; a < values.size(); ++a) {
    const double* line = factor.data() + a * values.size();
    double value = values[a];
    for (size_t k = 0; k < a; ++k) value -= line[k] * values[k];
    values[a] = value / line[a];
  }
}

double norm_of(std::span<const float> feature) {
  double square = 0;
  for (const float value : feature) square += static_cast<double>(value) * value;
  return std::sqrt(square);
}

}  // namespace

double energy_score(std::span<const float> logits, double temperature) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp((logit - most) / temperature);
  return most + temperature * std::log(sum);
}

ClassGaussians fit_gaussians(const FeatureRows& rows) {
  base::ensure(rows.size() > 0, "there are rows");
  const ClassMeans means = class_means(rows);
  ClassGaussians result;
  result.width = rows.width;
  result.factor = shrunk_covariance(rows, means);
  const auto width = static_cast<size_t>(rows.width);
  cholesky(result.factor, width);
  for (size_t k = 0; k < means.counts.size(); ++k) {
    if (means.counts[k] == 0) continue;
    const auto begin = means.sums.begin() + static_cast<std::ptrdiff_t>(k * width);
    result.means.insert(result.means.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
    divide_by_factor(result.factor, std::span(result.means).last(width));
  }
  return result;
}

double ClassGaussians::score(std::span<const float> feature) const {
  base::ensure(static_cast<int64_t>(feature.size()) == width, "features of one network");
  std::vector<double> values(feature.begin(), feature.end());
  divide_by_factor(factor, values);
  double nearest = std::numeric_limits<double>::infinity();
  for (size_t begin = 0; begin < means.size(); begin += values.size()) {
    double square = 0;
    for (size_t d = 0; d < values.size(); ++d) square += std::pow(values[d] - means[begin + d], 2);
    nearest = std::min(nearest, square);
  }
  return -nearest;
}

std::vector<Neighbour> nearest_rows(const FeatureRows& rows, std::span<const float> feature, int64_t count) {
  base::ensure(static_cast<int64_t>(feature.size()) == rows.width, "features of one network");
  const double own = std::max(norm_of(feature), 1e-300);
  std::vector<Neighbour> all;
  all.reserve(static_cast<size_t>(rows.size()));
  for (int64_t i = 0; i < rows.size(); ++i) {
    const auto row = rows.row(i);
    double product = 0;
    for (size_t d = 0; d < row.size(); ++d) product += static_cast<double>(row[d]) * feature[d];
    const double cosine = product / (own * std::max(norm_of(row), 1e-300));
    all.push_back({i, std::sqrt(std::max(0.0, 2 - 2 * cosine))});
  }
  const auto end = all.begin() + std::min<std::ptrdiff_t>(count, static_cast<std::ptrdiff_t>(all.size()));
  std::partial_sort(all.begin(), end, all.end(), [](const Neighbour& a, const Neighbour& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.row < b.row;
  });
  all.erase(end, all.end());
  return all;
}

double neighbour_score(const FeatureRows& rows, std::span<const float> feature, int64_t k) {
  const auto near = nearest_rows(rows, feature, k);
  return near.empty() ? 0 : -near.back().distance;
}

std::optional<double> alarm_threshold(std::span<const double> known, double rate) {
  const auto rank = static_cast<int64_t>(std::floor(static_cast<double>(known.size() + 1) * rate + 1e-9));
  if (rank < 1) return std::nullopt;
  return known[static_cast<size_t>(std::min(rank, static_cast<int64_t>(known.size())) - 1)];
}

}  // namespace lockstep::trust
