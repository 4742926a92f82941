// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/comm/group.h"

namespace lockstep::comm {

// A Group whose collectives are those of a c10d backend, waited for.
class BackedGroup : public Group {
 public:
  explicit BackedGroup(const c10::intrusive_ptr<c10d::Backend>& backend, c10::DeviceType device = c10::DeviceType::CPU);

  int64_t rank() const override { return group_->getRank(); }
  int64_t size() const override { return group_->getSize(); }
  c10::intrusive_ptr<c10d::ProcessGroup> group() override { return group_; }

  void all_reduce_sum(at::Tensor& tensor) override;
  void broadcast(at::Tensor& tensor, int64_t root) override;
  std::vector<at::Tensor> all_gather(const at::Tensor& tensor) override;
  void all_gather_into(const at::Tensor& in, at::Tensor& out) override;
  void reduce_scatter_sum(const at::Tensor& in, at::Tensor& out) override;
  void all_to_all(const at::Tensor& in, at::Tensor& out) override;
  void send(const at::Tensor& tensor, int64_t peer, int tag) override;
  void receive(at::Tensor& tensor, int64_t peer, int tag) override;
  void barrier() override;
  double seconds_waited() const override { return seconds_waited_; }

 protected:
  void release() { group_.reset(); }  // for one whose backend must end before something else of it
  void wait(const c10::intrusive_ptr<c10d::Work>& work);

 private:
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  double seconds_waited_ = 0;
};

}  // namespace lockstep::comm
