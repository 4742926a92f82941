// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "lockstep/model/network.h"
#include "lockstep/spec/job.h"

namespace lockstep::step {

// Which blocks of the network training.recompute names, by index. User error with the nearest names for one that the
// network does not have.
std::vector<bool> recomputed_blocks(const model::Network& network, const std::vector<std::string>& names);

struct BlockOutput {
  at::Tensor value;
  std::vector<at::Tensor> auxiliary;  // logits of auxiliary heads in the block
};

// Runs one block of the network; of its activations only the input is kept. Backward runs the block again from it:
// with the same weights (also their casts, should PassPrecision have put some in their place), the same random numbers
// and the same autocast, so values and gradients have the same bits as without recomputation. Batch norms count the
// batch once. The network must live until backward is over.
BlockOutput recomputed(const model::Network& network, size_t block, const at::Tensor& input, model::Mode mode);

}  // namespace lockstep::step
