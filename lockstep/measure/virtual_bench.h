// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/comm/group.h"
#include "lockstep/spec/job.h"

namespace lockstep::measure {

// What the same bits on any number of ranks cost: steps with training.virtual_ranks beside plain ones.
struct VirtualBench {
  spec::Job job;       // with virtual_ranks; threads: of one rank
  int64_t steps = 4;   // of one round
  int64_t rounds = 5;  // both ways in turns, so that a busy machine slows both
  std::function<void(std::string_view)> say = [](std::string_view) {};
};

struct VirtualTimes {
  std::vector<double> plain;  // seconds a step, one for each round
  std::vector<double> sliced;
  double ratio() const;  // median of the rounds' plain / sliced: the share of the plain rate that is left
};

// Every rank of the group calls it; made-up data that stays in memory.
VirtualTimes bench_virtual(const VirtualBench& bench, comm::Group& group);

// A row of results/*.json.
base::Json virtual_row(const VirtualBench& bench, const VirtualTimes& times, int64_t ranks, const std::string& command);

}  // namespace lockstep::measure
