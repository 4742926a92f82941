// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace lockstep::comm {

// Bytes of each rank's part of `whole`: `rows` of its first dim each, or equal parts when no rows are given (as c10d
// has it). REQUIRES: they make up the whole.
std::vector<int64_t> part_bytes(const at::Tensor& whole, const std::vector<int64_t>& rows, int64_t ranks);

// The values of one contiguous tensor into another of as many bytes, on the CPU past autograd: as a network card would.
// On a device it is an ordinary copy.
void copy_bytes(const at::Tensor& from, const at::Tensor& to);

}  // namespace lockstep::comm
