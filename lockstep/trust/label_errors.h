// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/trust/class_rows.h"

// Confident learning (Northcutt, Jiang and Chuang 2021, "Confident learning: estimating uncertainty in dataset
// labels").
namespace lockstep::trust {

struct LabelCandidate {
  int64_t row = 0;
  int64_t given = 0;
  int64_t suggested = 0;
  double score = 0;  // (p of the given class - largest other p + 1) / 2: 0 is as wrong as can be

  bool operator==(const LabelCandidate&) const = default;
};

// Rows whose label may be wrong, most likely first: those that the network takes for another class as surely as it
// takes the samples of that class. REQUIRES: `rows` had no part in training.
std::vector<LabelCandidate> label_candidates(const ClassRows& rows, double temperature = 1);

}  // namespace lockstep::trust
