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
  SimulatedWork(c10d::OpType type, std::vector<at::Tensor> tensors)
      : c10d::Work(-1, type),
        future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                         std::vector<c10::Device>{SimulatedDevice::device()})) {
    future_->markCompleted(c10::IValue(std::move(tensors)));
  }
  bool wait(std::chrono::milliseconds) override { return true; }
  bool isCompleted() override { return true; }
  bool isSuccess() const override { return true; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

class SimulatedBackend final : public c10d::Backend {
 public:
  SimulatedBackend(int ranks, std::shared_ptr<Recorder> recorder)
      : c10d::Backend(0, ranks), recorder_(std::move(recorder)) {}
  const std::string getBackendName() const override { return "lockstep_simulated"; }

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions&) override {
    recorder_->collective(CollectiveKind::all_reduce, bytes_of(tensors));
    return c10::make_intrusive<SimulatedWork>(c10d::OpType::ALLREDUCE, tensors);
  }
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions&) override {
    recorder_->collective(CollectiveKind::broadcast, bytes_of(tensors));
    return c10::make_intrusive<SimulatedWork>(c10d::OpType::BROADCAST, tensors);
  }

 private:
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
    finish(CollectiveKind::all_reduce, {tensor});
    tensor.mul_(size());
  }
  void broadcast(at::Tensor& tensor, int64_t /*root*/) override { finish(CollectiveKind::broadcast, {tensor}); }
  std::vector<at::Tensor> all_gather(const at::Tensor& tensor) override {
    finish(CollectiveKind::all_gather, {tensor});
    return std::vector<at::Tensor>(static_cast<size_t>(size()), tensor);
  }
  void barrier() override {}
  [[noreturn]] void abort(int exit_code) override { std::_Exit(exit_code); }
  double seconds_waited() const override { return 0; }

 private:
  void finish(CollectiveKind kind, const std::vector<at::Tensor>& tensors) {
    recorder_->wait(recorder_->collective(kind, bytes_of(tensors)));
  }

  std::shared_ptr<Recorder> recorder_;
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
};

}  // namespace

std::unique_ptr<comm::Group> simulated_group(int64_t ranks, std::shared_ptr<Recorder> recorder) {
  return std::make_unique<SimulatedGroup>(ranks, std::move(recorder));
}

}  // namespace lockstep::trace
