// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/run/order.h"

namespace lockstep::run {

// The order of epochs in which rare classes are drawn more often (data.balance). An epoch is as long as ever; each
// class has a quota of it, its number of samples to the power of 1 - balance. A class is gone through in rounds, each a
// shuffled order of its samples, and an epoch goes on where the one before stopped: over a run each of them comes as
// often as any other, give or take one. Fixed by (seed, epoch, position), in constant time: resumes and any number of
// ranks see the same samples.
class BalancedOrder {
 public:
  // REQUIRES: some labels, none of them negative; 0 < balance <= 1.
  BalancedOrder(const std::vector<int32_t>& labels, double balance, int64_t seed);

  // The samples at these positions of the epoch.
  std::vector<int64_t> samples(int64_t epoch, Range positions) const;
  int64_t size() const { return static_cast<int64_t>(members_.size()); }
  int64_t quota(int32_t label) const;  // how often the class is drawn in an epoch
  int64_t count(int32_t label) const;  // how many samples it has

 private:
  int64_t seed_;
  std::vector<int64_t> members_;       // samples, class by class
  std::vector<int64_t> first_ = {0};   // where those of a class begin in members_
  std::vector<int64_t> begins_ = {0};  // where the quota of a class begins in an epoch that is not shuffled
};

}  // namespace lockstep::run
