// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

namespace lockstep::comm {

// A collective under way whose end somebody else announces through the future: waiting never calls into MPI.
class FutureWork : public c10d::Work {
 public:
  FutureWork(c10d::OpType type, std::vector<at::Tensor> tensors)
      : c10d::Work(-1, type),
        tensors_(std::move(tensors)),
        future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()))) {}

  bool wait(std::chrono::milliseconds /*timeout*/) override {
    future_->waitAndThrow();
    return true;
  }
  bool isCompleted() override { return future_->completed(); }
  bool isSuccess() const override { return future_->completed() && !future_->hasError(); }
  std::vector<at::Tensor> result() override { return tensors_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

  void complete() { future_->markCompleted(c10::IValue(tensors_)); }
  void fail(std::exception_ptr error) { future_->setError(std::move(error)); }

 private:
  std::vector<at::Tensor> tensors_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace lockstep::comm
