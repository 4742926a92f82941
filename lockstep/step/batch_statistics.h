// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "lockstep/comm/group.h"
#include "lockstep/model/network.h"

namespace lockstep::step {

// The running statistics of the batch norms of blocks [from, end), the same on all ranks after every step: the mean
// over the ranks, weighted by their samples. So a checkpoint at any step, taken by any rank, is the state of the run.
class BatchStatistics {
 public:
  BatchStatistics(const model::Network& network, size_t from);

  void keep();     // before forward
  void restore();  // back to what keep() saw: the step was not taken
  // After forward over `samples` of the batch's `global_size` on this rank. A statistic that is not finite (the
  // variance of a single value) counts as unchanged.
  void merge(comm::Group& group, int64_t samples, int64_t global_size);
  // After forward with batch norms that are the same on every rank by themselves.
  void keep_finite();

  // For steps that are replayed: what keep() saw, and to have restore() go back to it again.
  const at::Tensor& kept() const { return kept_; }
  void restore_to(const at::Tensor& kept) { kept_ = kept; }
  at::Tensor all_finite(at::Device device) const;  // a truth, there; true where there are none

  bool empty() const { return buffers_.empty(); }
  at::Tensor flat() const;  // all of them, one after the other; a copy. REQUIRES: not empty
  void write(const at::Tensor& flat);

 private:
  std::vector<at::Tensor> buffers_;  // floating ones
  at::Tensor kept_;
};

}  // namespace lockstep::step
