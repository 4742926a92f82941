// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/comm/group.h"
#include "lockstep/spec/job.h"

namespace lockstep::measure {

struct DdpBench {
  spec::Job job;  // model, image size, global batch, optimizer, threads of each rank
  int64_t ranks = 2;
  int64_t steps = 4;                 // of one round
  int64_t rounds = 5;                // ours and the peer's alternate
  std::string peer;                  // a Python with torch; empty: ours alone
  std::vector<std::string> workers;  // the command that starts our ranks: they serve_steps
  std::function<void(std::string_view)> say = [](std::string_view) {};
};

struct DdpTimes {
  std::vector<double> ours, peer;  // seconds a step, one for each round
  std::vector<double> exposed;     // of ours: seconds that a step waited for the network
  double alone = 0;                // seconds of the same all-reduce with nothing to hide behind
  std::string peer_greeting;

  double ratio() const;         // median of the rounds' ratios; above 1: we are faster
  double hidden_share() const;  // of the all-reduce, behind backward
};

// Our overlapped reducer on CPU ranks beside PyTorch's DDP with gloo: both stand ready and step in turns, so that a
// busy machine slows both.
DdpTimes bench_ddp(const DdpBench& bench);

// What our ranks do: rank 0 reads a line at a time, all obey. "go N" runs N steps on made-up data and answers "SECONDS
// EXPOSED" of one step; "alone N" sums the gradients N times without a step and answers the median seconds.
void serve_steps(const spec::Job& job, comm::Group& group, std::istream& in, std::ostream& out);

base::Json ddp_row(const DdpBench& bench, const DdpTimes& times, const std::string& command);

}  // namespace lockstep::measure
