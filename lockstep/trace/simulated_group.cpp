// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trace/simulated_group.h"

#include <cstdlib>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <utility>

#include "lockstep/trace/simulated_device.h"

namespace lockstep::trace {
namespace {

using forecast::CollectiveKind;

int64_t bytes_of(const std::vector<at::Tensor>& tensors) {
  int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

// Done at once; the recording says when somebody waited.
class SimulatedWork final : public c10d::Work {
 public:
  SimulatedWork(c10d::OpType type, std::vector<at::Tensor> tensors, std::shared_ptr<Recorder> recorder, int64_t id)
      : c10d::Work(-1, type),
        recorder_(std::move(recorder)),
        id_(id),
        future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                         std::vector<c10::Device>{SimulatedDevice::device()})) {
    future_->markCompleted(c10::IValue(std::move(tensors)));
  }
  bool wait(std::chrono::milliseconds) override {
    recorder_->wait(id_);
    return true;
  }
  bool isCompleted() override { return true; }
  bool isSuccess() const override { return true; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  std::shared_ptr<Recorder> recorder_;
  int64_t id_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

class SimulatedBackend final : public c10d::Backend {
 public:
  SimulatedBackend(int ranks, std::shared_ptr<Recorder> recorder)
      : c10d::Backend(0, ranks), recorder_(std::move(recorder)) {}
  const std::string getBackendName() const override { return "lockstep_simulated"; }

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions&) override {
    return record(CollectiveKind::all_reduce, c10d::OpType::ALLREDUCE, tensors, bytes_of(tensors));
  }
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions&) override {
    return record(CollectiveKind::broadcast, c10d::OpType::BROADCAST, tensors, bytes_of(tensors));
  }
  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& out, at::Tensor&, const c10d::AllgatherOptions&) override {
    return record(CollectiveKind::all_gather, c10d::OpType::_ALLGATHER_BASE, {out}, bytes_of({out}));
  }
  c10::intrusive_ptr<c10d::Work> _reduce_scatter_base(at::Tensor& out, at::Tensor& in,
                                                      const c10d::ReduceScatterOptions&) override {
    return record(CollectiveKind::reduce_scatter, c10d::OpType::_REDUCE_SCATTER_BASE, {out}, bytes_of({in}));
  }
  c10::intrusive_ptr<c10d::Work> alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>&,
                                               std::vector<int64_t>&, const c10d::AllToAllOptions&) override {
    return record(CollectiveKind::all_to_all, c10d::OpType::ALLTOALL_BASE, {out}, bytes_of({in}));
  }
  c10::intrusive_ptr<c10d::Work> send(std::vector<at::Tensor>& tensors, int, int) override {
    return record(CollectiveKind::send, c10d::OpType::SEND, tensors, bytes_of(tensors));
  }
  c10::intrusive_ptr<c10d::Work> recv(std::vector<at::Tensor>& tensors, int, int) override {
    return record(CollectiveKind::send, c10d::OpType::RECV, tensors, bytes_of(tensors));
  }

 private:
  c10::intrusive_ptr<c10d::Work> record(CollectiveKind kind, c10d::OpType type, std::vector<at::Tensor> results,
                                        int64_t bytes) {
    const int64_t id = recorder_->collective(kind, bytes);
    return c10::make_intrusive<SimulatedWork>(type, std::move(results), recorder_, id);
  }

  std::shared_ptr<Recorder> recorder_;
};

class SimulatedGroup final : public comm::Group {
 public:
  SimulatedGroup(int64_t ranks, std::shared_ptr<Recorder> recorder)
      : recorder_(std::move(recorder)),
        group_(c10::make_intrusive<c10d::ProcessGroup>(c10::make_intrusive<c10d::HashStore>(), 0,
                                                       static_cast<int>(ranks))) {
    const auto backend = c10::make_intrusive<SimulatedBackend>(static_cast<int>(ranks), recorder_);
    group_->setBackend(c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::CUSTOM, backend);
    group_->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::CUSTOM, backend);
    group_->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  }

  int64_t rank() const override { return 0; }
  int64_t size() const override { return group_->getSize(); }
  c10::intrusive_ptr<c10d::ProcessGroup> group() override { return group_; }
  void all_reduce_sum(at::Tensor& tensor) override {
    finish(CollectiveKind::all_reduce, bytes_of({tensor}));
    tensor.mul_(size());
  }
  void broadcast(at::Tensor& tensor, int64_t /*root*/) override {
    finish(CollectiveKind::broadcast, bytes_of({tensor}));
  }
  std::vector<at::Tensor> all_gather(const at::Tensor& tensor) override {
    finish(CollectiveKind::all_gather, bytes_of({tensor}) * size());
    return std::vector<at::Tensor>(static_cast<size_t>(size()), tensor);
  }
  void all_gather_into(const at::Tensor& in, at::Tensor& out) override {
    finish(CollectiveKind::all_gather, bytes_of({out}));
    if (!in.device().is_cpu()) return;  // the simulated GPU has no values
    for (int64_t r = 0; r < size(); ++r) out.view({size(), -1})[r].copy_(in.view({-1}));
  }
  void reduce_scatter_sum(const at::Tensor& in, at::Tensor& out) override {
    finish(CollectiveKind::reduce_scatter, bytes_of({in}));
    if (in.device().is_cpu()) out.view({-1}).copy_(in.view({size(), -1})[0]).mul_(size());
  }
  void all_to_all(const at::Tensor& in, at::Tensor& out) override {
    finish(CollectiveKind::all_to_all, bytes_of({in}));
    if (!in.device().is_cpu()) return;
    for (int64_t r = 0; r < size(); ++r) out.view({size(), -1})[r].copy_(in.view({size(), -1})[0]);
  }
  void send(const at::Tensor& tensor, int64_t, int) override { finish(CollectiveKind::send, bytes_of({tensor})); }
  void receive(at::Tensor& tensor, int64_t, int) override { finish(CollectiveKind::send, bytes_of({tensor})); }
  void barrier() override {}
  [[noreturn]] void abort(int exit_code) override { std::_Exit(exit_code); }
  double seconds_waited() const override { return 0; }

 private:
  void finish(CollectiveKind kind, int64_t bytes) { recorder_->wait(recorder_->collective(kind, bytes)); }

  std::shared_ptr<Recorder> recorder_;
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
};

}  // namespace

std::unique_ptr<comm::Group> simulated_group(int64_t ranks, std::shared_ptr<Recorder> recorder) {
  return std::make_unique<SimulatedGroup>(ranks, std::move(recorder));
}

}  // namespace lockstep::trace
