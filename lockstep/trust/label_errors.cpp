// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/label_errors.h"

#include <algorithm>
#include <limits>

namespace lockstep::trust {
namespace {

constexpr double kSlack = 1e-6;

// By class: the mean probability that its own rows give it. Of a class without rows nothing can be sure.
std::vector<double> class_thresholds(const ClassRows& rows, double temperature) {
  std::vector<double> sums(static_cast<size_t>(rows.classes)), counts(sums.size());
  for (int64_t i = 0; i < rows.size(); ++i) {
    const auto label = static_cast<size_t>(rows.labels[static_cast<size_t>(i)]);
    sums[label] += softmax(rows.row(i), temperature)[label];
    ++counts[label];
  }
  for (size_t k = 0; k < sums.size(); ++k) {
    sums[k] = counts[k] > 0 ? std::max(sums[k] / counts[k], 2 * kSlack) : std::numeric_limits<double>::infinity();
  }
  return sums;
}

// The class that the row is surely of; -1: none.
int64_t sure_class(const std::vector<double>& shares, const std::vector<double>& thresholds) {
  int64_t found = -1, num_sure = 0;
  for (size_t k = 0; k < shares.size(); ++k) {
    if (shares[k] < thresholds[k] - kSlack) continue;
    if (num_sure++ == 0) found = static_cast<int64_t>(k);
  }
  return num_sure > 1 ? top_class(shares) : found;
}

}  // namespace

std::vector<LabelCandidate> label_candidates(const ClassRows& rows, double temperature) {
  const auto thresholds = class_thresholds(rows, temperature);
  std::vector<LabelCandidate> found;
  for (int64_t i = 0; i < rows.size(); ++i) {
    const auto shares = softmax(rows.row(i), temperature);
    const int64_t given = rows.labels[static_cast<size_t>(i)];
    const int64_t sure = sure_class(shares, thresholds);
    if (sure < 0 || sure == given) continue;
    double other = 0;
    for (size_t k = 0; k < shares.size(); ++k) {
      if (static_cast<int64_t>(k) != given) other = std::max(other, shares[k]);
    }
    found.push_back({i, given, sure, (shares[static_cast<size_t>(given)] - other + 1) / 2});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const LabelCandidate& a, const LabelCandidate& b) { return a.score < b.score; });
  return found;
}

}  // namespace lockstep::trust
