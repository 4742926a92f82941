// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "lockstep/model/network.h"
#include "lockstep/spec/job.h"

namespace lockstep::step {

// Which blocks of the network training.recompute names, by index. User error with the nearest names for one that the
// network does not have.
std::vector<bool> recomputed_blocks(const model::Network& network, const std::vector<std::string>& names);

// Runs one block of the network; of its activations only the input is kept. Backward runs the block again from it:
// with the same weights (also their casts, should PassPrecision have put some in their place), the same random numbers
// and the same autocast, so values and gradients have the same bits as without recomputation. Batch norms count the
// batch once. The network must live until backward is over.
model::Bundle recomputed(const model::Network& network, size_t block, const model::Bundle& input, model::Mode mode);

// Has the weights of blocks of which the network itself has none (ZeRO-3), and takes their gradients.
class WeightSource {
 public:
  enum class Pass { forward, backward };
  virtual ~WeightSource() = default;
  virtual bool holds(size_t block) const = 0;
  // All of the block's, in its order. They live as long as the result does.
  virtual std::vector<at::Tensor> weights(size_t block, Pass pass) = 0;
  // Of one backward, in the same order; undefined: nothing was made of that weight.
  virtual void take_gradients(size_t block, const std::vector<at::Tensor>& gradients) = 0;
};

// recomputed(), with weights that exist for as long as the block runs, in forward and again in backward. `precision`
// gives them the casts that PassPrecision gives a network's own. REQUIRES: source.holds(block); it lives until backward
// is over.
model::Bundle gathered(const model::Network& network, size_t block, const model::Bundle& input, model::Mode mode,
                       spec::Precision precision, WeightSource& source);

}  // namespace lockstep::step
