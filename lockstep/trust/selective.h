// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/trust/class_rows.h"

// A network that may decline to answer: what it gets wrong among those that it answers.
namespace lockstep::trust {

struct RiskPoint {
  double coverage = 0;    // share that is answered: the surest first
  double risk = 0;        // share of those that are wrong
  double confidence = 0;  // of the last one answered
};

struct RiskCoverage {
  double aurc = 0;                // mean over k of the risk among the k surest rows
  double best_aurc = 0;           // the same where every right answer is surer than every wrong one
  std::vector<RiskPoint> points;  // at most kMostRiskPoints, evenly spread

  base::Json to_json() const;
};
constexpr int64_t kMostRiskPoints = 200;

// REQUIRES: rows.
RiskCoverage risk_coverage(std::span<const Answer> answers);

// The lowest confidence from which on answers are wrong no more often than `risk`, which holds with probability
// `level` over the rows that it was found with. None: no confidence can be shown to do.
// Whether all may be answered is asked first: a lenient risk must not fail on the few surest rows. Else thresholds are
// tested one after the other, the strictest first, until one fails (fixed-sequence testing, as in Angelopoulos et al.,
// "Learn then test", 2021). Half of 1 - `level` goes to either.
std::optional<double> confidence_for_risk(std::span<const Answer> answers, double risk, double level = 0.9);

}  // namespace lockstep::trust
