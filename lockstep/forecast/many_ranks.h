// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "lockstep/forecast/time.h"

namespace lockstep::forecast {

// How much more than the mean the slowest of n equal ranks takes, in standard deviations: the mean of the largest of n
// normal numbers (the asymptotic form of extreme value theory).
double slowest_of(int64_t ranks);

// One rank, measured alone: what a step of many ranks is made of when each takes as many samples as this one.
struct RankCosts {
  double step_seconds = 0;  // forward, backward and update
  double gradient_bytes = 0;
  double backward_share = 2.0 / 3;  // of the step: two products for each one of forward
  double noise = 0.007;             // identical GPUs and processes differ by 0.4 to 2 % from step to step
  bool overlaps = true;             // buckets leave while backward runs; false: after it, as one
};

struct RankForecast {
  int64_t ranks = 1;
  double step = 0;           // seconds
  double communication = 0;  // seconds of all-reduce
  double exposed = 0;        // of these, not hidden behind backward
  double skew = 0;           // waited for the slowest
  double efficiency = 1;     // share of the rate that `ranks` times one rank would have

  double hidden_share() const { return communication > 0 ? std::max(0.0, 1 - exposed / communication) : 1; }
};

// The reducer's buckets (1 MiB first, then 25 MiB) become ready evenly over the backward pass and go over the network
// one behind the other; `all_reduce` gives the seconds of one among `ranks`.
RankForecast forecast_ranks(const RankCosts& costs, int64_t ranks,
                            const std::function<double(double bytes, int64_t ranks)>& all_reduce);

// Bytes of each bucket of so large a gradient, in the order in which they leave.
std::vector<double> bucket_bytes(double gradient_bytes);

// The link that explains two measured all-reduces of two ranks, a small one and a large one: latency and rate, as
// mpi_collective_seconds takes them. REQUIRES: large_bytes > small_bytes, and it took longer.
Network fitted_link(double small_bytes, double small_seconds, double large_bytes, double large_seconds);

}  // namespace lockstep::forecast
