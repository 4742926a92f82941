// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/future_work.h"
#include "lockstep/comm/group.h"
#include "lockstep/comm/parts.h"

namespace lockstep::comm {
namespace {

c10::intrusive_ptr<c10d::Work> done_at_once(c10d::OpType type, std::vector<at::Tensor> tensors) {
  auto work = c10::make_intrusive<FutureWork>(type, std::move(tensors));
  work->complete();
  return work;
}

class SingleBackend : public c10d::Backend {
 public:
  SingleBackend() : c10d::Backend(0, 1) {}
  const std::string getBackendName() const override { return "lockstep_single"; }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions&) override {
    return done_at_once(c10d::OpType::ALLREDUCE, tensors);
  }
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions&) override {
    return done_at_once(c10d::OpType::BROADCAST, tensors);
  }
  c10::intrusive_ptr<c10d::Work> allgather(std::vector<std::vector<at::Tensor>>& out, std::vector<at::Tensor>& in,
                                           const c10d::AllgatherOptions&) override {
    out[0][0].copy_(in[0]);
    return done_at_once(c10d::OpType::ALLGATHER, out[0]);
  }
  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& out, at::Tensor& in,
                                                 const c10d::AllgatherOptions&) override {
    copy_bytes(in, out);
    return done_at_once(c10d::OpType::_ALLGATHER_BASE, {out});
  }
  c10::intrusive_ptr<c10d::Work> _reduce_scatter_base(at::Tensor& out, at::Tensor& in,
                                                      const c10d::ReduceScatterOptions&) override {
    copy_bytes(in, out);
    return done_at_once(c10d::OpType::_REDUCE_SCATTER_BASE, {out});
  }
  c10::intrusive_ptr<c10d::Work> alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>&,
                                               std::vector<int64_t>&, const c10d::AllToAllOptions&) override {
    copy_bytes(in, out);
    return done_at_once(c10d::OpType::ALLTOALL_BASE, {out});
  }
  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions&) override {
    return done_at_once(c10d::OpType::BARRIER, {});
  }
};

class SingleGroup : public Group {
 public:
  int64_t rank() const override { return 0; }
  int64_t size() const override { return 1; }
  c10::intrusive_ptr<c10d::ProcessGroup> group() override {
    if (!group_) {
      group_ = c10::make_intrusive<c10d::ProcessGroup>(c10::make_intrusive<c10d::HashStore>(), 0, 1);
      group_->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::CUSTOM,
                         c10::make_intrusive<SingleBackend>());
      group_->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
    }
    return group_;
  }
  void all_reduce_sum(at::Tensor&) override {}
  void broadcast(at::Tensor&, int64_t) override {}
  std::vector<at::Tensor> all_gather(const at::Tensor& tensor) override { return {tensor.clone()}; }
  void all_gather_into(const at::Tensor& in, at::Tensor& out) override { copy_bytes(in, out); }
  void reduce_scatter_sum(const at::Tensor& in, at::Tensor& out) override { copy_bytes(in, out); }
  void all_to_all(const at::Tensor& in, at::Tensor& out) override { copy_bytes(in, out); }
  void send(const at::Tensor&, int64_t peer, int) override { nobody(peer); }
  void receive(at::Tensor&, int64_t peer, int) override { nobody(peer); }
  void barrier() override {}
  [[noreturn]] void abort(int exit_code) override { std::_Exit(exit_code); }
  double seconds_waited() const override { return 0; }

 private:
  static void nobody(int64_t peer) {
    throw base::Error(base::Blame::bug, base::text("the only rank of its group has no rank ", peer, " to talk to"));
  }
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
};

}  // namespace

std::unique_ptr<Group> single_group() {
  return std::make_unique<SingleGroup>();
}

}  // namespace lockstep::comm
