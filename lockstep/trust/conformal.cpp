// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/conformal.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/hash.h"
#include "lockstep/base/random.h"

namespace lockstep::trust {
namespace {

constexpr double kRounding = 1e-9;  // (19 + 1) * 0.95 is 19, whatever floating point makes of it

int64_t rank_of(int64_t rows, double coverage) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(rows + 1) * coverage - kRounding));
}

// Most probable first; of equal ones the lower class. Those that are hopelessly below `least` are left out, so that a
// thousand classes need not be sorted for a few.
std::vector<int64_t> by_probability(std::span<const double> probabilities, double least = 0) {
  std::vector<int64_t> order;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    if (probabilities[i] >= least - kRounding) order.push_back(static_cast<int64_t>(i));
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return probabilities[static_cast<size_t>(a)] > probabilities[static_cast<size_t>(b)];
  });
  return order;
}

}  // namespace

double conformal_score(std::span<const double> probabilities, int64_t label, SetMethod method, double u) {
  const double share = probabilities[static_cast<size_t>(label)];
  if (method == SetMethod::lac) return 1 - share;
  double mass = 0;
  for (const int64_t each : by_probability(probabilities)) {
    mass += probabilities[static_cast<size_t>(each)];
    if (each == label) break;
  }
  return mass - u * share;
}

double draw_for(std::span<const float> logits) {
  const uint32_t crc = base::crc32c(std::as_bytes(logits));
  return base::Random(base::derive_seed(crc, "conformal")).uniform();
}

std::vector<double> calibration_scores(const ClassRows& rows, double temperature, SetMethod method) {
  std::vector<double> scores;
  scores.reserve(rows.labels.size());
  for (int64_t i = 0; i < rows.size(); ++i) {
    scores.push_back(conformal_score(softmax(rows.row(i), temperature), rows.labels[static_cast<size_t>(i)], method,
                                     draw_for(rows.row(i))));
  }
  std::sort(scores.begin(), scores.end());
  return scores;
}

std::optional<double> conformal_threshold(std::span<const double> scores, double coverage) {
  const int64_t rank = rank_of(static_cast<int64_t>(scores.size()), coverage);
  if (rank > static_cast<int64_t>(scores.size())) return std::nullopt;
  return scores[static_cast<size_t>(std::max<int64_t>(1, rank) - 1)];
}

int64_t fewest_rows(double coverage) {
  auto rows = static_cast<int64_t>(coverage / (1 - coverage));
  while (rank_of(rows, coverage) > rows) ++rows;
  return rows;
}

std::vector<int64_t> prediction_set(std::span<const double> probabilities, double threshold, SetMethod method,
                                    double u) {
  const auto score_of = [&](double share, double mass) {
    return method == SetMethod::lac ? 1 - share : mass - u * share;
  };
  std::vector<int64_t> chosen;
  double mass = 0;
  for (const int64_t each : by_probability(probabilities, method == SetMethod::lac ? 1 - threshold : 0)) {
    const double share = probabilities[static_cast<size_t>(each)];
    mass += share;
    if (score_of(share, mass) > threshold) break;  // scores grow along the order
    chosen.push_back(each);
  }
  if (chosen.empty()) chosen.push_back(top_class(probabilities));
  return chosen;
}

Interval coverage_interval(int64_t calibrated, int64_t tested, double coverage, double level) {
  const auto rank = static_cast<double>(rank_of(calibrated, coverage));
  const Interval counts = beta_binomial_interval(tested, rank, static_cast<double>(calibrated) + 1 - rank, level);
  return {counts.low / static_cast<double>(tested), counts.high / static_cast<double>(tested)};
}

}  // namespace lockstep::trust
