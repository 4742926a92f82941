// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "lockstep/model/network.h"
#include "lockstep/spec/job.h"

namespace lockstep::step {

// The type activations have under `precision`.
at::ScalarType compute_type(spec::Precision precision);

// For its lifetime the network's matrices and convolutions are casts in `compute_type`; norms keep their fp32 weights
// and statistics. The casts carry gradients back to the fp32 master weights, which are all that is stored. With fp32:
// nothing. REQUIRES: one scope at a time per network; backward may run after the scope.
class WeightCasts {
 public:
  WeightCasts(const model::Network& network, spec::Precision precision);
  ~WeightCasts();
  WeightCasts(const WeightCasts&) = delete;
  WeightCasts& operator=(const WeightCasts&) = delete;

 private:
  struct Kept {
    at::Tensor* place;
    at::Tensor master;
  };
  std::vector<Kept> kept_;
};

}  // namespace lockstep::step
