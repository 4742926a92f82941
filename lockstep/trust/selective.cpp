// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/selective.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/trust/distributions.h"

namespace lockstep::trust {
namespace {

std::vector<Answer> surest_first(std::span<const Answer> answers) {
  std::vector<Answer> order(answers.begin(), answers.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const Answer& a, const Answer& b) { return a.confidence > b.confidence; });
  return order;
}

double mean_risk(std::span<const Answer> order) {
  double sum = 0;
  int64_t wrong = 0, seen = 0;
  for (const auto& answer : order) {
    wrong += answer.right ? 0 : 1;
    sum += static_cast<double>(wrong) / static_cast<double>(++seen);
  }
  return sum / static_cast<double>(seen);
}

}  // namespace

RiskCoverage risk_coverage(std::span<const Answer> answers) {
  base::ensure(!answers.empty(), "there are rows");
  std::vector<Answer> order = surest_first(answers);
  RiskCoverage result;
  result.aurc = mean_risk(order);
  const auto rows = static_cast<int64_t>(order.size());
  const int64_t points = std::min(rows, kMostRiskPoints);
  int64_t wrong = 0, next = 1;
  for (int64_t seen = 1; seen <= rows; ++seen) {
    const Answer& last = order[static_cast<size_t>(seen - 1)];
    wrong += last.right ? 0 : 1;
    if (seen < next * rows / points) continue;
    ++next;
    const auto answered = static_cast<double>(seen);
    result.points.push_back(
        {answered / static_cast<double>(rows), static_cast<double>(wrong) / answered, last.confidence});
  }
  std::stable_partition(order.begin(), order.end(), [](const Answer& answer) { return answer.right; });
  result.best_aurc = mean_risk(order);
  return result;
}

std::optional<double> confidence_for_risk(std::span<const Answer> answers, double risk, double level) {
  const std::vector<Answer> order = surest_first(answers);
  if (order.empty()) return std::nullopt;
  const auto rows = static_cast<int64_t>(order.size());
  const double error = (1 - level) / 2;  // of either question below
  const auto all_wrong = std::count_if(order.begin(), order.end(), [](const Answer& answer) { return !answer.right; });
  if (binomial_cdf(all_wrong, rows, risk) <= error) return order.back().confidence;
  // With half of these rows only a faultless record could show it. The thresholds that are tested depend on no label.
  const auto fewest = std::max(2 * static_cast<int64_t>(std::ceil(std::log(error) / std::log1p(-risk))), rows / 10);
  const int64_t step = std::max<int64_t>(1, rows / 50);
  std::optional<double> found;
  int64_t wrong = 0;
  bool pending = false;  // a threshold within a tie is tested behind it
  for (size_t i = 0; i < order.size(); ++i) {
    wrong += order[i].right ? 0 : 1;
    const auto seen = static_cast<int64_t>(i) + 1;
    const bool ends_tie = i + 1 == order.size() || order[i + 1].confidence < order[i].confidence;
    const bool is_tested = seen == rows || (seen - fewest) % step == 0;
    pending = pending || (seen >= fewest && is_tested);
    if (!pending || !ends_tie) continue;
    pending = false;
    if (binomial_cdf(wrong, seen, risk) > error) break;
    found = order[i].confidence;
  }
  return found;
}

base::Json RiskCoverage::to_json() const {
  base::Json all = base::Json::object();
  all["aurc"] = aurc;
  all["best_aurc"] = best_aurc;
  all["points"] = base::Json::array();
  for (const auto& point : points) {
    all["points"].push_back(base::Json::array({point.coverage, point.risk, point.confidence}));
  }
  return all;
}

}  // namespace lockstep::trust
