// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/relayed_backend.h"

#include <ATen/ops/zeros.h>

#include <exception>

#include "lockstep/comm/future_work.h"

namespace lockstep::comm {
namespace {

using Works = RelayedBackend::Works;

// A call of the record for the length of its scope; one that is left by an exception has failed, and a peer is to
// blame: memory on the GPU is taken before, its want is this rank's own.
class Told {
 public:
  Told(CallRecord& calls, const char* name, CallRecord::Among among)
      : calls_(calls), ticket_(calls.begin(name, among)), thrown_(std::uncaught_exceptions()) {}
  ~Told() { calls_.end(ticket_, std::uncaught_exceptions() == thrown_); }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;

 private:
  CallRecord& calls_;
  int64_t ticket_;
  int thrown_;
};

Works done(c10d::OpType type, std::vector<at::Tensor> tensors) {
  auto work = c10::make_intrusive<FutureWork>(type, std::move(tensors));
  work->complete();
  return work;
}

Works back(c10d::OpType type, const at::Tensor& from, at::Tensor& to) {
  to.copy_(from);
  return done(type, {to});
}

}  // namespace

Works RelayedBackend::allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) {
  std::vector<at::Tensor> there{tensors[0].to(device_)};
  const Told told(*calls_, "all-reduce", CallRecord::Among::all);
  gpu_->allreduce(there, options)->wait();
  return back(c10d::OpType::ALLREDUCE, there[0], tensors[0]);
}

Works RelayedBackend::broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) {
  std::vector<at::Tensor> there{tensors[0].to(device_)};
  const Told told(*calls_, "broadcast", CallRecord::Among::all);
  gpu_->broadcast(there, options)->wait();
  return back(c10d::OpType::BROADCAST, there[0], tensors[0]);
}

Works RelayedBackend::allgather(std::vector<std::vector<at::Tensor>>& out, std::vector<at::Tensor>& in,
                                const c10d::AllgatherOptions& options) {
  at::Tensor mine = in[0].to(device_);
  at::Tensor all = mine.new_empty({size_ * mine.numel()});
  const Told told(*calls_, "all-gather", CallRecord::Among::all);
  gpu_->_allgather_base(all, mine, options)->wait();
  const at::Tensor home = all.to(at::kCPU).view({size_, -1});
  for (int64_t r = 0; r < size_; ++r) out[0][static_cast<size_t>(r)].view({-1}).copy_(home[r]);
  return done(c10d::OpType::ALLGATHER, out[0]);
}

Works RelayedBackend::_allgather_base(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& options) {
  at::Tensor from = in.to(device_), to = out.to(device_);
  const Told told(*calls_, "all-gather", CallRecord::Among::all);
  gpu_->_allgather_base(to, from, options)->wait();
  return back(c10d::OpType::_ALLGATHER_BASE, to, out);
}

Works RelayedBackend::_reduce_scatter_base(at::Tensor& out, at::Tensor& in, const c10d::ReduceScatterOptions& options) {
  at::Tensor from = in.to(device_), to = out.to(device_);
  const Told told(*calls_, "reduce-scatter", CallRecord::Among::all);
  gpu_->_reduce_scatter_base(to, from, options)->wait();
  return back(c10d::OpType::_REDUCE_SCATTER_BASE, to, out);
}

Works RelayedBackend::alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& rows_in,
                                    std::vector<int64_t>& rows_out, const c10d::AllToAllOptions& options) {
  at::Tensor from = in.to(device_), to = out.to(device_);
  const Told told(*calls_, "all-to-all", CallRecord::Among::all);
  gpu_->alltoall_base(to, from, rows_in, rows_out, options)->wait();
  return back(c10d::OpType::ALLTOALL_BASE, to, out);
}

Works RelayedBackend::send(std::vector<at::Tensor>& tensors, int peer, int tag) {
  std::vector<at::Tensor> there{tensors[0].to(device_)};
  const Told told(*calls_, "send", CallRecord::Among::two);
  gpu_->send(there, peer, tag)->wait();
  return done(c10d::OpType::SEND, tensors);
}

Works RelayedBackend::recv(std::vector<at::Tensor>& tensors, int peer, int tag) {
  std::vector<at::Tensor> there{tensors[0].to(device_)};
  const Told told(*calls_, "receive", CallRecord::Among::two);
  gpu_->recv(there, peer, tag)->wait();
  return back(c10d::OpType::RECV, there[0], tensors[0]);
}

Works RelayedBackend::barrier(const c10d::BarrierOptions&) {
  std::vector<at::Tensor> one{at::zeros({1}, at::TensorOptions(device_))};
  const Told told(*calls_, "barrier", CallRecord::Among::all);
  gpu_->allreduce(one, c10d::AllreduceOptions())->wait();
  one[0].to(at::kCPU);  // the host waits
  return done(c10d::OpType::BARRIER, {});
}

}  // namespace lockstep::comm
