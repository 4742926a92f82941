// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "lockstep/comm/call_record.h"
#include "plugins/mpi/mpi_plugin.h"

namespace lockstep::comm {

// libtorch's view of MPI. Collectives start in the calling thread; one thread of the backend polls them, more seldom
// the longer they take, and completes their futures: so reduction goes on while backward computes, and waiting ranks
// leave their core to others.
class MpiBackend : public c10d::Backend {
 public:
  // Writes down every call in `calls`.
  MpiBackend(const lockstep_mpi& mpi, std::shared_ptr<CallRecord> calls);
  ~MpiBackend() override;  // REQUIRES: nothing under way
  const std::string getBackendName() const override { return "lockstep_mpi"; }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override;
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override;
  c10::intrusive_ptr<c10d::Work> allgather(std::vector<std::vector<at::Tensor>>& out, std::vector<at::Tensor>& in,
                                           const c10d::AllgatherOptions& options) override;
  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& out, at::Tensor& in,
                                                 const c10d::AllgatherOptions& options) override;
  c10::intrusive_ptr<c10d::Work> _reduce_scatter_base(at::Tensor& out, at::Tensor& in,
                                                      const c10d::ReduceScatterOptions& options) override;
  c10::intrusive_ptr<c10d::Work> alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& rows_in,
                                               std::vector<int64_t>& rows_out,
                                               const c10d::AllToAllOptions& options) override;
  c10::intrusive_ptr<c10d::Work> send(std::vector<at::Tensor>& tensors, int peer, int tag) override;
  c10::intrusive_ptr<c10d::Work> recv(std::vector<at::Tensor>& tensors, int peer, int tag) override;
  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions& options) override;

 private:
  class Poller;
  // `start` gives MPI's code and the request; the work holds `kept` until it is done and has `results`.
  template <class Start>
  c10::intrusive_ptr<c10d::Work> begin(c10d::OpType type, const char* call, std::vector<at::Tensor> results,
                                       std::vector<at::Tensor> kept, Start start, std::function<void()> after = {});
  const lockstep_mpi& mpi_;
  std::shared_ptr<CallRecord> calls_;
  std::unique_ptr<Poller> poller_;
};

}  // namespace lockstep::comm
