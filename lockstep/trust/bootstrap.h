// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lockstep/trust/distributions.h"

namespace lockstep::trust {

// Bias-corrected and accelerated (Efron 1987): from the statistic of all rows, of resamples, and with each unit left
// out once. `resampled` in any order.
Interval bca_interval(double observed, std::vector<double> resampled, std::span<const double> left_out, double level);

struct BootstrapOptions {
  double level = 0.95;
  int64_t resamples = 2000;
  uint64_t seed = 0;
};

// Of the mean of `values`. Rows of one group are drawn together (several photographs of one thing are no independent
// samples); no groups: each row is its own. Where all values are equal a bootstrap tells nothing: then the exact
// binomial interval of values that are 0 or 1, and the value itself for others. REQUIRES: values.
Interval bootstrap_mean(std::span<const double> values, std::span<const int64_t> groups = {},
                        const BootstrapOptions& options = {});

}  // namespace lockstep::trust
