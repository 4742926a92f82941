// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/balanced_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/base/random.h"

namespace lockstep::run {
namespace {

int64_t class_seed(int64_t seed, size_t label) {
  return static_cast<int64_t>(base::derive_seed(static_cast<uint64_t>(seed), "class") >> 2) +
         static_cast<int64_t>(label);
}

// Whole numbers that add up to the number of samples; what rounding leaves goes to the largest remainders.
std::vector<int64_t> quotas_of(const std::vector<int64_t>& counts, double balance) {
  const auto total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  std::vector<double> shares;
  shares.reserve(counts.size());
  for (const int64_t count : counts)
    shares.push_back(count > 0 ? std::pow(static_cast<double>(count), 1 - balance) : 0);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<int64_t> quotas;
  std::vector<size_t> by_remainder(counts.size());
  std::iota(by_remainder.begin(), by_remainder.end(), size_t{0});
  for (auto& share : shares) {
    share *= total / sum;
    quotas.push_back(static_cast<int64_t>(share));
  }
  std::stable_sort(by_remainder.begin(), by_remainder.end(), [&](size_t a, size_t b) {
    return shares[a] - std::floor(shares[a]) > shares[b] - std::floor(shares[b]);
  });
  int64_t left = static_cast<int64_t>(total) - std::accumulate(quotas.begin(), quotas.end(), int64_t{0});
  for (size_t i = 0; left > 0; i = (i + 1) % by_remainder.size()) {
    if (counts[by_remainder[i]] == 0) continue;
    ++quotas[by_remainder[i]];
    --left;
  }
  return quotas;
}

}  // namespace

BalancedOrder::BalancedOrder(const std::vector<int32_t>& labels, double balance, int64_t seed) : seed_(seed) {
  base::ensure(!labels.empty() && balance > 0 && balance <= 1, "classes to balance");
  base::ensure(*std::min_element(labels.begin(), labels.end()) >= 0, "every sample has a class");
  std::vector<int64_t> counts(static_cast<size_t>(*std::max_element(labels.begin(), labels.end())) + 1);
  for (const int32_t label : labels) ++counts[static_cast<size_t>(label)];
  for (const int64_t count : counts) first_.push_back(first_.back() + count);
  for (const int64_t quota : quotas_of(counts, balance)) begins_.push_back(begins_.back() + quota);
  members_.resize(labels.size());
  std::vector<int64_t> next(first_.begin(), first_.end() - 1);
  for (size_t i = 0; i < labels.size(); ++i) {
    members_[static_cast<size_t>(next[static_cast<size_t>(labels[i])]++)] = static_cast<int64_t>(i);
  }
}

int64_t BalancedOrder::quota(int32_t label) const {
  const auto at = static_cast<size_t>(label);
  return at + 1 < begins_.size() ? begins_[at + 1] - begins_[at] : 0;
}

int64_t BalancedOrder::count(int32_t label) const {
  const auto at = static_cast<size_t>(label);
  return at + 1 < first_.size() ? first_[at + 1] - first_[at] : 0;
}

std::vector<int64_t> BalancedOrder::samples(int64_t epoch, Range positions) const {
  std::vector<int64_t> ids;
  const Order shuffled(size(), seed_, epoch);
  for (int64_t position = positions.begin; position < positions.end; ++position) {
    const int64_t slot = shuffled(position);
    const auto label =
        static_cast<size_t>(std::upper_bound(begins_.begin(), begins_.end(), slot) - begins_.begin() - 1);
    const int64_t draw = epoch * (begins_[label + 1] - begins_[label]) + slot - begins_[label];
    const int64_t count = first_[label + 1] - first_[label];
    const Order round(count, class_seed(seed_, label), draw / count);
    ids.push_back(members_[static_cast<size_t>(first_[label] + round(draw % count))]);
  }
  return ids;
}

}  // namespace lockstep::run
