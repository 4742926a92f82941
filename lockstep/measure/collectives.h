// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/comm/group.h"
#include "lockstep/spec/job.h"

namespace lockstep::measure {

// One size of an all-reduce, nothing else going on.
struct CollectiveTime {
  int64_t bytes = 0;
  std::vector<double> seconds;  // of each round, on rank 0
};

// Sums gradients of so many bytes over the ranks, in the reducer's buckets, all under way at once.
std::vector<CollectiveTime> time_all_reduce(comm::Group& group, const std::vector<int64_t>& bytes, int64_t rounds,
                                            spec::ReducePrecision precision = spec::ReducePrecision::fp32);

// Rows of results/*.json, one a size.
base::Json collective_rows(const std::vector<CollectiveTime>& times, int64_t ranks, const std::string& command);

// The command that runs `lockstep bench WORDS`, without --ranks, as so many ranks on this machine, with whatever starts
// ranks here. Machine error when nothing does.
std::vector<std::string> bench_in_ranks(const std::vector<std::string>& words, int64_t ranks);

}  // namespace lockstep::measure
