// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/reliability.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lockstep/base/error.h"

namespace lockstep::trust {
namespace {

constexpr double kLeastShare = 1e-300;  // a probability that underflowed: its logarithm is large, not infinite

// Bins of equal counts, the first ones larger by one where it does not come out even.
double adaptive_error(const std::vector<Answer>& all, int64_t bins) {
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return all[a].confidence < all[b].confidence; });
  const auto rows = static_cast<int64_t>(all.size());
  double error = 0;
  for (int64_t bin = 0, at = 0; bin < bins; ++bin) {
    const int64_t end = at + rows / bins + (bin < rows % bins ? 1 : 0);
    double gap = 0;
    for (; at < end; ++at) {
      const Answer& answer = all[order[static_cast<size_t>(at)]];
      gap += (answer.right ? 1 : 0) - answer.confidence;
    }
    error += std::abs(gap);
  }
  return error / static_cast<double>(rows);
}

}  // namespace

Reliability reliability(const ClassRows& rows, double temperature, int64_t bins) {
  base::ensure(rows.size() > 0, "there are rows");
  const auto all = answers(rows, temperature);
  const auto count = static_cast<double>(rows.size());
  Reliability result;
  result.bins.reserve(static_cast<size_t>(bins));
  for (int64_t bin = 0; bin < bins; ++bin) {
    const auto edge = [&](int64_t at) { return static_cast<double>(at) / static_cast<double>(bins); };
    result.bins.push_back({edge(bin), edge(bin + 1)});
  }
  for (int64_t i = 0; i < rows.size(); ++i) {
    const Answer& answer = all[static_cast<size_t>(i)];
    const auto above = std::lower_bound(result.bins.begin(), result.bins.end() - 1, answer.confidence,
                                        [](const ReliabilityBin& bin, double value) { return bin.high < value; });
    ++above->rows;
    above->confidence += answer.confidence;
    above->accuracy += answer.right ? 1 : 0;
    const auto shares = softmax(rows.row(i), temperature);
    const auto label = static_cast<size_t>(rows.labels[static_cast<size_t>(i)]);
    for (size_t k = 0; k < shares.size(); ++k) result.brier += std::pow(shares[k] - (k == label ? 1 : 0), 2) / count;
    result.nll -= std::log(std::max(shares[label], kLeastShare)) / count;
    result.accuracy += (answer.right ? 1 : 0) / count;
    result.confidence += answer.confidence / count;
  }
  for (auto& bin : result.bins) {
    if (bin.rows == 0) continue;
    result.ece += std::abs(bin.accuracy - bin.confidence) / count;
    bin.confidence /= static_cast<double>(bin.rows);
    bin.accuracy /= static_cast<double>(bin.rows);
  }
  result.adaptive_ece = adaptive_error(all, bins);
  return result;
}

base::Json Reliability::to_json() const {
  base::Json all = base::Json::object();
  all["ece"] = ece;
  all["adaptive_ece"] = adaptive_ece;
  all["brier"] = brier;
  all["nll"] = nll;
  all["accuracy"] = accuracy;
  all["confidence"] = confidence;
  all["bins"] = base::Json::array();
  for (const auto& bin : bins) {
    base::Json row = base::Json::object();
    row["low"] = bin.low;
    row["high"] = bin.high;
    row["rows"] = bin.rows;
    row["confidence"] = bin.confidence;
    row["accuracy"] = bin.accuracy;
    all["bins"].push_back(std::move(row));
  }
  return all;
}

}  // namespace lockstep::trust
