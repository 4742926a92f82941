// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/model/network.h"

namespace lockstep::step {

// One parameter in the row of its block.
struct Slot {
  std::string name = {};
  size_t index = 0;  // among the block's parameters
  std::vector<int64_t> sizes = {};
  std::vector<int64_t> strides = {};
  int64_t begin = 0;  // in the row
  int64_t numel = 0;
};

// How the parameters of one block lie in one row that is cut into equal parts, one for each rank (training.zero): one
// behind the other in their order, each in its own memory order (channels_last stays), each from a multiple of
// kAlignment elements on; then nothing up to a multiple of ranks * kAlignment. Rank r has the r-th part. So a rank has
// at most one partition of each parameter, and it begins at a multiple of kAlignment of that parameter: kernels that
// walk vectors of registers and then single elements treat each element as in the whole parameter, bit for bit.
struct FlatBlock {
  size_t block = 0;
  std::vector<Slot> slots = {};
  int64_t part = 0;  // elements of one rank
  int64_t row = 0;   // of all
};

// 256 bytes: the alignment that kernels prefer for a tensor, and a multiple of every vector register.
constexpr int64_t kAlignment = 64;

// The rows of blocks [from, end); blocks without parameters have none. The padding is below kAlignment elements for
// each parameter and below ranks * kAlignment for each block.
std::vector<FlatBlock> flat_blocks(const model::Network& network, size_t from, int64_t ranks);

// The elements [first, first + count) of a parameter that lie in rank `rank`'s part, from `at` of the part on.
struct Cut {
  int64_t first = 0;
  int64_t count = 0;
  int64_t at = 0;
};
Cut cut_of(const FlatBlock& flat, const Slot& slot, int64_t rank);

// That partition of the parameter, or of the part; shares the storage. A partition of a matrix or a kernel is a matrix
// of one row and one of a vector a vector: optimizers treat norms and biases by that. REQUIRES: `tensor` has no gaps.
at::Tensor partition_of_parameter(const at::Tensor& tensor, const Slot& slot, const Cut& cut);
at::Tensor partition_of_part(const at::Tensor& part, const Slot& slot, const Cut& cut);

// Whether a tensor has the parameter's shape and its elements lie in the same order.
bool lies_as(const at::Tensor& tensor, const Slot& slot);

// The parameter's position in a row, as the parameter looks; shares the storage.
at::Tensor in_row(const at::Tensor& row, const Slot& slot);

}  // namespace lockstep::step
