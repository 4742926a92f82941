// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/trust/class_rows.h"

namespace lockstep::trust {

// The rows whose top confidence lies in (low, high].
struct ReliabilityBin {
  double low = 0;
  double high = 0;
  int64_t rows = 0;
  double confidence = 0;  // means; 0 where there are no rows
  double accuracy = 0;
};

// Whether a confidence of 80 % is right in 80 of 100 cases.
struct Reliability {
  std::vector<ReliabilityBin> bins;  // of equal width
  double ece = 0;                    // expected calibration error over them: the mean |accuracy - confidence|
  double adaptive_ece = 0;           // the same over as many bins of equal counts
  double brier = 0;                  // mean over the rows of the sum over the classes of (p - [is the class])^2
  double nll = 0;                    // mean of -log of the probability of the right class
  double accuracy = 0;
  double confidence = 0;

  base::Json to_json() const;
};

// REQUIRES: rows.
Reliability reliability(const ClassRows& rows, double temperature = 1, int64_t bins = 15);

}  // namespace lockstep::trust
