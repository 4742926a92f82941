// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lockstep/comm/group.h"
#include "lockstep/step/virtual_tree.h"

namespace lockstep::step {

using Tensors = std::vector<at::Tensor>;  // gradients of all parameters, then statistics: floats, dense in memory

void add_tensors(Tensors& left, const Tensors& right);

// The sum of all ranks' partial sums in the order of the tree, the same bits on every rank. `mine`: those of this
// rank's maximal nodes, in order; they are used up. `like`: tensors of the right sizes and layouts.
// All of it passes through in intervals: rank r gets the r-th part of an interval from everybody, adds it up and gives
// the sum to all. Where a rank has one partial sum (ranks a power of two) this moves as many bytes as a ring would:
// twice the gradient; else up to twice the partial sums of the rank that has most. Beside the partial sums it needs
// three buffers of `buffer` elements at most (16 MiB: far above a message's latency, far below a gradient).
Tensors exchange_partials(comm::Group& group, const Slices& slices, std::vector<Partial<Tensors>> mine,
                          const Tensors& like, int64_t buffer = int64_t{4} << 20);

}  // namespace lockstep::step
