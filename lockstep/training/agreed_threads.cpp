// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/agreed_threads.h"

#include <ATen/ops/full.h>

#include <algorithm>

namespace lockstep::training {

int64_t agree_on_threads(int64_t mine, comm::Group& group) {
  int64_t least = mine;
  for (const at::Tensor& theirs : group.all_gather(at::full({1}, mine, at::kLong))) {
    least = std::min(least, theirs.item<int64_t>());
  }
  return least;
}

}  // namespace lockstep::training
