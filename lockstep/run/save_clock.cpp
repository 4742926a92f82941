// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/save_clock.h"

#include <algorithm>
#include <cmath>

namespace lockstep::run {
namespace {

constexpr double kFirstInterval = 60;
constexpr double kLargestShare = 0.02;  // of the mean time between failures: half of an interval is lost, that is 1 %
constexpr double kStallShare = 0.01;
constexpr double kLooks = 16;  // per interval

}  // namespace

double young_interval(const SaveCost& cost, double mean_time_between_failures) {
  const double young = std::sqrt(2 * (cost.stall + cost.processor) * mean_time_between_failures);
  const double wanted = std::min(young, kLargestShare * mean_time_between_failures);
  return std::max({wanted, cost.stall / kStallShare, 2 * cost.durable});
}

SaveClock::SaveClock(double mean_time_between_failures, double now)
    : failures_(mean_time_between_failures), last_(now) {}

double SaveClock::interval() const {
  return cost_ ? young_interval(*cost_, failures_) : std::min(kFirstInterval, kLargestShare * failures_);
}

SaveClock::Look SaveClock::look(int64_t step, double now, double step_seconds) const {
  Look look;
  double left = last_ + interval() - now;
  look.save = left < step_seconds / 2;
  if (look.save) left = interval();
  const double pause = std::min(left, interval() / kLooks);
  look.next_step = step + std::max<int64_t>(1, static_cast<int64_t>(pause / std::max(1e-6, step_seconds)));
  return look;
}

}  // namespace lockstep::run
