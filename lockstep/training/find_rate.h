// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/comm/group.h"
#include "lockstep/spec/job.h"
#include "lockstep/training/ledger.h"

namespace lockstep::training {

struct RateOptions {
  int64_t steps = 100;  // at most
  double lowest = 1e-7;
  double highest = 1;
  at::Device device = at::kCPU;
  std::function<std::string()> stop = [] {
    return std::string();
  };                   // asked before each step: why to stop; empty: go on
  Logger logger = {};  // rank 0 only
};

struct RatePoint {
  double rate = 0;
  double loss = 0;    // of the step with that rate
  double smooth = 0;  // the mean of it and those before, the newest counting most
};

struct RateSweep {
  std::vector<RatePoint> points;
  double suggested = 0;  // for training.optimizer.lr; 0: the loss fell nowhere
  bool diverged = false;
  std::string phase;  // which one was tried; empty: the job has none

  base::Json to_json() const;
  std::string to_text() const;
};

// Takes the job's own steps from its own starting point while the rate rises from the lowest to the highest by the same
// factor each time (Smith 2017, arXiv 1506.01186), until the loss is far above its lowest. Of a job with phases it
// tries the last one. Writes nothing and touches no run folder. Every rank calls it.
RateSweep find_rate(const spec::Job& job, const RateOptions& options, comm::Group& group);

// The rate at which the smooth loss falls fastest, a step of the sweep's noise left out at both ends; 0: nowhere.
double suggest_rate(const std::vector<RatePoint>& points);

}  // namespace lockstep::training
