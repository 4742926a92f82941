// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>
#include <vector>

#include "lockstep/comm/call_record.h"

namespace lockstep::comm {

// CPU tensors through a GPU's backend: copied to `device`, exchanged there, copied back. Every call is over when it
// returns, and stands in `calls` until then: the host of a rank that waits here is known to wait.
class RelayedBackend : public c10d::Backend {
 public:
  using Works = c10::intrusive_ptr<c10d::Work>;

  RelayedBackend(c10::intrusive_ptr<c10d::Backend> gpu, at::Device device, std::shared_ptr<CallRecord> calls)
      : c10d::Backend(gpu->getRank(), gpu->getSize()),
        gpu_(std::move(gpu)),
        device_(device),
        calls_(std::move(calls)) {}
  const std::string getBackendName() const override { return "lockstep_relayed"; }

  Works allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override;
  Works broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override;
  Works allgather(std::vector<std::vector<at::Tensor>>& out, std::vector<at::Tensor>& in,
                  const c10d::AllgatherOptions& options) override;
  Works _allgather_base(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& options) override;
  Works _reduce_scatter_base(at::Tensor& out, at::Tensor& in, const c10d::ReduceScatterOptions& options) override;
  Works alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& rows_in, std::vector<int64_t>& rows_out,
                      const c10d::AllToAllOptions& options) override;
  Works send(std::vector<at::Tensor>& tensors, int peer, int tag) override;
  Works recv(std::vector<at::Tensor>& tensors, int peer, int tag) override;
  Works barrier(const c10d::BarrierOptions& options) override;

 private:
  c10::intrusive_ptr<c10d::Backend> gpu_;
  at::Device device_;
  std::shared_ptr<CallRecord> calls_;
};

}  // namespace lockstep::comm
