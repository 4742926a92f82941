// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

namespace lockstep::step {

// Norms whose bits depend on the values alone, never on threads, ranks, partitions or vector units: the squares of each
// chunk of 65,536 elements of a tensor (counted from its first, in the order in which it lies in memory) are added up
// in one fixed order in double precision, and these sums one after the other. Whoever holds whole chunks of a tensor
// can compute their sums and hand them on.
constexpr int64_t kNormChunk = 65536;

// One sum of squares a chunk. Tensors of 16 bits count with their values as floats.
std::vector<double> chunk_squares(const at::Tensor& tensor);

// The root of the sum, in the order given.
double norm_of_squares(std::span<const double> squares);

std::vector<double> chunk_norms(const std::vector<at::Tensor>& tensors);  // of each tensor

// The norm over all elements of all tensors, in their order: of one parameter, or of a whole gradient.
double chunk_norm(const std::vector<at::Tensor>& tensors);

}  // namespace lockstep::step
