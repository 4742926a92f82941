// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/comm/group.h"

namespace lockstep::training {

// What the ranks spend on their own work in a step, so that one for which the others wait can be named. Each rank adds
// up its own; now and then, where the ranks are on the host anyway, they tell each other: two small messages in a
// hundred steps. On a GPU the host sees a rank's data and its own work; what the GPUs wait for each other within a
// step it cannot tell from computing.
class RankTimes {
 public:
  struct Times {
    double seconds = 0;  // of a step, all of it
    double data = 0;     // of these, waiting for a batch
    double communication = 0;

    double own() const { return seconds - communication; }
  };

  void step(const Times& times);
  // After `step` steps of the run, in a session that went on after `resumed_at`: the same on every rank.
  static bool is_due(int64_t step, int64_t resumed_at);
  // Every rank calls it. The fields of the journal's `rank_times` since the last call; none of a single rank.
  std::optional<base::Json> gather(comm::Group& group, const std::string& host);

 private:
  Times sums_;
  int64_t steps_ = 0;
};

}  // namespace lockstep::training
