// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "lockstep/comm/group.h"

namespace lockstep::step {

// Sums gradients over the ranks while backward runs: libtorch's own c10d::Reducer (the engine of DDP) with a hook that
// adds where DDP averages. Buckets are fixed by the order of the parameters and never rebuilt from the order seen: a
// ring adds in an order that depends on the place in the bucket, so a resumed run would otherwise differ in the last
// bit. With one rank it does nothing.
class Reducer {
 public:
  Reducer(const std::vector<at::Tensor>& parameters, comm::Group& group);  // parameters that require gradients
  ~Reducer();

  void prepare();  // before the backward whose gradients shall be summed: the last micro-batch of a step
  // Seconds the last backward spent after its own computing was done; `end` is when it returned (steady clock).
  double exposed_seconds(double end) const;

 private:
  class SumHook;
  class Engine;
  std::shared_ptr<double> last_bucket_;  // when the last bucket was handed over
  std::unique_ptr<Engine> engine_;
};

double steady_seconds();

}  // namespace lockstep::step
