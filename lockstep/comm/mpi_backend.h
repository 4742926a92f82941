// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "plugins/mpi/mpi_plugin.h"

namespace lockstep::comm {

// The plug-in beside liblockstep_core.so, opened; machine error with the line that builds it when it is not there.
const lockstep_mpi& open_mpi_plugin();

// Machine error in MPI's own words unless `code` is 0.
void check_mpi(const lockstep_mpi& mpi, int code, const char* call);

// libtorch's view of MPI. Collectives start in the calling thread; one thread of the backend polls them, more seldom
// the longer they take, and completes their futures: so reduction goes on while backward computes, and waiting ranks
// leave their core to others.
class MpiBackend : public c10d::Backend {
 public:
  explicit MpiBackend(const lockstep_mpi& mpi);
  ~MpiBackend() override;  // REQUIRES: nothing under way
  const std::string getBackendName() const override { return "lockstep_mpi"; }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override;
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override;
  c10::intrusive_ptr<c10d::Work> allgather(std::vector<std::vector<at::Tensor>>& out, std::vector<at::Tensor>& in,
                                           const c10d::AllgatherOptions& options) override;
  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions& options) override;

 private:
  class Poller;
  const lockstep_mpi& mpi_;
  std::unique_ptr<Poller> poller_;
};

}  // namespace lockstep::comm
