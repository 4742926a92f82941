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

// Identical GPUs and processes differ by 0.4 to 2 % from step to step; every step waits for the slowest.
constexpr double kRankNoise = 0.007;
// Seconds of that wait in a step which takes one rank `seconds`.
double wait_for_slowest(double seconds, int64_t ranks, double noise = kRankNoise);

// What one rank computes and sends, as clocks: a plan plays a traced step on them, forecast_ranks a measured one.
class RankClocks {
 public:
  // `overlap`: share of the computing rate that a busy network takes (collective.h, overlap_cost).
  explicit RankClocks(double overlap) : overlap_(overlap) {}

  void compute(double seconds, double start);  // not before `start`
  void compute(double seconds) { compute(seconds, device_); }
  double send(double seconds);  // behind what was sent before; the time at which it is there
  void wait(double until);      // the computing stands still

  double device() const { return device_; }  // the time up to which the device has work
  double communication() const { return communication_; }
  double exposed() const { return exposed_; }

 private:
  double overlap_;
  double device_ = 0, network_ = 0, communication_ = 0, exposed_ = 0;
};

// One rank, measured alone: what a step of many ranks is made of when each takes as many samples as this one.
struct RankCosts {
  double step_seconds = 0;  // forward, backward and update
  double gradient_bytes = 0;
  double backward_share = 2.0 / 3;  // of the step: two products for each one of forward
  double noise = kRankNoise;
  bool overlaps = true;  // buckets leave while backward runs; false: after it, as one
  double overlap = 0;    // see RankClocks
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

// The reducer's buckets (1 MiB first, then 25 MiB) become ready evenly over the backward pass, with which the step
// ends, and go over the network one behind the other; `all_reduce` gives the seconds of one among `ranks`.
RankForecast forecast_ranks(const RankCosts& costs, int64_t ranks,
                            const std::function<double(double bytes, int64_t ranks)>& all_reduce);

// Bytes of each bucket of so large a gradient, in the order in which they leave.
std::vector<double> bucket_bytes(double gradient_bytes);

// The link that explains two measured all-reduces of two ranks, a small one and a large one: latency and rate, as
// mpi_collective_seconds takes them. REQUIRES: large_bytes > small_bytes, and it took longer.
Network fitted_link(double small_bytes, double small_seconds, double large_bytes, double large_seconds);

}  // namespace lockstep::forecast
