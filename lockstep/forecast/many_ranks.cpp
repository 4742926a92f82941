// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/many_ranks.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::forecast {

double slowest_of(int64_t ranks) {
  if (ranks < 2) return 0;
  const double root = std::sqrt(2 * std::log(static_cast<double>(ranks)));
  return std::max(0.0, root - (std::log(std::log(static_cast<double>(ranks))) + std::log(4 * M_PI)) / (2 * root));
}

std::vector<double> bucket_bytes(double gradient_bytes) {
  constexpr double kFirst = 1 << 20;
  constexpr double kOthers = 25 << 20;
  std::vector<double> buckets;
  for (double left = gradient_bytes; left > 0; left -= buckets.back()) {
    buckets.push_back(std::min(left, buckets.empty() ? kFirst : kOthers));
  }
  return buckets;
}

double wait_for_slowest(double seconds, int64_t ranks, double noise) {
  return noise * slowest_of(ranks) * seconds;
}

void RankClocks::compute(double seconds, double start) {
  device_ = std::max(device_, start);
  const double shared = std::min(seconds / (1 - overlap_), std::max(0.0, network_ - device_));
  device_ += shared + (seconds - shared * (1 - overlap_));
}

double RankClocks::send(double seconds) {
  network_ = std::max(network_, device_) + seconds;
  communication_ += seconds;
  return network_;
}

void RankClocks::wait(double until) {
  if (until <= device_) return;
  exposed_ += until - device_;
  device_ = until;
}

RankForecast forecast_ranks(const RankCosts& costs, int64_t ranks,
                            const std::function<double(double bytes, int64_t ranks)>& all_reduce) {
  base::ensure(ranks >= 1 && costs.step_seconds > 0, "a rank takes time");
  RankForecast forecast{.ranks = ranks, .step = costs.step_seconds};
  if (ranks == 1) return forecast;
  const double backward = costs.step_seconds * costs.backward_share;
  RankClocks clocks(costs.overlap);
  clocks.compute(costs.step_seconds - backward);
  double there = 0;  // when the last bucket is
  if (!costs.overlaps || costs.gradient_bytes <= 0) clocks.compute(backward);
  for (const double bytes : bucket_bytes(costs.gradient_bytes)) {
    if (costs.overlaps) clocks.compute(backward * bytes / costs.gradient_bytes);
    there = clocks.send(all_reduce(bytes, ranks));
  }
  clocks.wait(there);
  forecast.communication = clocks.communication();
  forecast.exposed = clocks.exposed();
  forecast.skew = wait_for_slowest(clocks.device(), ranks, costs.noise);
  forecast.step = clocks.device() + forecast.skew;
  forecast.efficiency = costs.step_seconds / forecast.step;
  return forecast;
}

Network fitted_link(double small_bytes, double small_seconds, double large_bytes, double large_seconds) {
  base::ensure(large_bytes > small_bytes && large_seconds > small_seconds, "more bytes take longer");
  // Two ranks: two rounds of latency, and each byte passes the link once.
  const double rate = (large_bytes - small_bytes) / (large_seconds - small_seconds);
  const double latency = std::max(1e-9, (small_seconds - small_bytes / rate) / 2);
  return {.ranks = 2, .intra_rate = rate, .intra_latency = latency};
}

}  // namespace lockstep::forecast
