// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "lockstep/comm/group.h"
#include "lockstep/spec/job.h"

namespace lockstep::step {

// Sums gradients over the ranks while backward runs: libtorch's own c10d::Reducer (the engine of DDP) with a hook that
// adds where DDP averages. Buckets are fixed by the order of the parameters and never rebuilt from the order seen: a
// ring adds in an order that depends on the position in the bucket, so a resumed run would otherwise differ in the last
// bit. With bf16, gradients are rounded to bfloat16 on their way and added up as such: half the bytes, an error of at
// most ranks * 2^-8 of the sum of the ranks' absolute values; what comes out is fp32 again. With one rank it does
// nothing.
class Reducer {
 public:
  // `parameters` require gradients.
  Reducer(const std::vector<at::Tensor>& parameters, comm::Group& group,
          spec::ReducePrecision precision = spec::ReducePrecision::fp32);
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

}  // namespace lockstep::step
