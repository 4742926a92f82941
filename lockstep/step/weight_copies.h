// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>
#include <vector>

#include "lockstep/model/network.h"
#include "lockstep/spec/job.h"

namespace lockstep::step {

// Copies in 16 bit of a network's trained weights that last from step to step: a pass computes with them, their
// gradients stay 16 bit wide, and the optimizer writes them in the pass in which it writes the fp32 weights. The same
// values as casts of each pass (WeightCasts) have, without the casts. With bf16 what is cast there; with amp the
// kernels of convolutions. For steps of one pass: a sum over micro-batches needs fp32.
class WeightCopies {
 public:
  WeightCopies(const model::Network& network, spec::Precision precision, size_t from);

  bool empty() const { return copies_.empty(); }
  std::vector<at::Tensor> all() const;
  at::Tensor of(const at::Tensor& weight) const;    // undefined: it has none
  at::Tensor leaf(const at::Tensor& weight) const;  // which gets the gradient: the copy, or the weight itself
  // Makes those good whose weights were written since by others than the optimizer's kernels (update.h): at the start,
  // and after a checkpoint was loaded, a rewind, an evaluation of the moving average.
  void refresh();

 private:
  struct Copy {
    at::Tensor weight, copy;
    int64_t version = -1;  // of the weight
  };
  std::vector<Copy> copies_;
  std::unordered_map<const void*, size_t> places_;  // by weight
};

}  // namespace lockstep::step
