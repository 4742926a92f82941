// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/parts.h"

#include <cstring>
#include <numeric>

#include "lockstep/base/error.h"

namespace lockstep::comm {

std::vector<int64_t> part_bytes(const at::Tensor& whole, const std::vector<int64_t>& rows, int64_t ranks) {
  const auto bytes = static_cast<int64_t>(whole.nbytes());
  if (rows.empty()) {
    base::ensure(whole.numel() % ranks == 0, "equal parts divide the tensor");
    return std::vector<int64_t>(static_cast<size_t>(ranks), bytes / ranks);
  }
  base::ensure(static_cast<int64_t>(rows.size()) == ranks, "one length per rank");
  base::ensure(std::accumulate(rows.begin(), rows.end(), int64_t{0}) == whole.size(0), "the parts make up the tensor");
  const int64_t row = whole.size(0) > 0 ? bytes / whole.size(0) : 0;
  std::vector<int64_t> parts;
  for (const int64_t count : rows) parts.push_back(count * row);
  return parts;
}

void copy_bytes(const at::Tensor& from, const at::Tensor& to) {
  base::ensure(from.nbytes() == to.nbytes() && from.is_contiguous() && to.is_contiguous(),
               "a copy goes between contiguous tensors of one size");
  if (!from.device().is_cpu()) {
    to.copy_(from.view(to.sizes()));
  } else if (from.nbytes() > 0 && from.data_ptr() != to.data_ptr()) {
    std::memcpy(to.data_ptr(), from.data_ptr(), from.nbytes());
  }
}

}  // namespace lockstep::comm
