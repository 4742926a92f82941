// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/run/order.h"

namespace lockstep::run {

// The order of epochs whose batches hold samples of one group each, as far as there are enough (instances.canvases).
// Each group is shuffled; as many whole batches as it has come in a shuffled order with those of the others. Samples
// that are left over, and those of group 0, which goes with any other, make mixed batches. Each sample comes once an
// epoch. Fixed by (seed, epoch, position), in constant time: resumes and any number of ranks see the same batches.
class GroupedOrder {
 public:
  // `groups`: of each sample. REQUIRES: some samples, no negative group, batch > 0.
  GroupedOrder(const std::vector<int32_t>& groups, int64_t batch, int64_t seed);

  struct Batch {
    int32_t group = 0;  // 0: mixed
    std::vector<int64_t> samples;
  };
  // The batch at `positions` of the epoch. The first one of an epoch counts as mixed: whoever follows is no larger.
  // REQUIRES: positions begin at a whole number of batches and hold no more than one.
  Batch batch(int64_t epoch, Range positions) const;

  int64_t size() const { return static_cast<int64_t>(members_.size()); }
  int64_t batches(int32_t group) const;  // that hold this group alone, in an epoch; of group 0: the mixed ones

 private:
  struct Group {
    int64_t first = 0;  // of members_
    int64_t count = 0;
    int64_t batches = 0;  // whole ones of it alone
    int64_t rest = 0;     // begin of what is left over of it among all that is left over
  };

  int64_t sample_of(size_t group, int64_t index, int64_t epoch) const;
  int64_t left_over(int64_t index, int64_t epoch) const;

  int64_t batch_;
  int64_t seed_;
  std::vector<int64_t> members_;  // samples, group by group
  std::vector<Group> groups_;
  int64_t num_grouped_ = 0;  // batches of one group
  int64_t num_left_ = 0;     // samples of mixed batches
};

}  // namespace lockstep::run
