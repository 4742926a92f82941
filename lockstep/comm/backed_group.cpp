// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/backed_group.h"

#include <ATen/ops/empty_like.h>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"

namespace lockstep::comm {

BackedGroup::BackedGroup(const c10::intrusive_ptr<c10d::Backend>& backend, c10::DeviceType device)
    : group_(c10::make_intrusive<c10d::ProcessGroup>(c10::make_intrusive<c10d::HashStore>(), backend->getRank(),
                                                     backend->getSize())) {
  group_->setBackend(device, c10d::ProcessGroup::BackendType::CUSTOM, backend);
  group_->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
}

void BackedGroup::all_reduce_sum(at::Tensor& tensor) {
  std::vector<at::Tensor> tensors{tensor};
  wait(group_->allreduce(tensors));
}

void BackedGroup::broadcast(at::Tensor& tensor, int64_t root) {
  std::vector<at::Tensor> tensors{tensor};
  c10d::BroadcastOptions options;
  options.rootRank = root;
  wait(group_->broadcast(tensors, options));
}

std::vector<at::Tensor> BackedGroup::all_gather(const at::Tensor& tensor) {
  std::vector<std::vector<at::Tensor>> out(1);
  for (int64_t i = 0; i < size(); ++i) out[0].push_back(at::empty_like(tensor));
  std::vector<at::Tensor> in{tensor};
  wait(group_->allgather(out, in));
  return out[0];
}

void BackedGroup::all_gather_into(const at::Tensor& in, at::Tensor& out) {
  base::ensure(out.numel() == in.numel() * size(), "an all-gather leaves every rank's part");
  at::Tensor from = in;
  wait(group_->_allgather_base(out, from));
}

void BackedGroup::reduce_scatter_sum(const at::Tensor& in, at::Tensor& out) {
  base::ensure(in.numel() == out.numel() * size(), "a reduce-scatter takes one part per rank");
  at::Tensor from = in;
  wait(group_->_reduce_scatter_base(out, from));
}

void BackedGroup::all_to_all(const at::Tensor& in, at::Tensor& out) {
  base::ensure(in.numel() == out.numel() && in.numel() % size() == 0, "an all-to-all swaps equal parts");
  at::Tensor from = in.view({-1});
  at::Tensor to = out.view({-1});
  std::vector<int64_t> equal;  // no lengths: equal ones
  wait(group_->alltoall_base(to, from, equal, equal));
}

void BackedGroup::send(const at::Tensor& tensor, int64_t peer, int tag) {
  std::vector<at::Tensor> tensors{tensor};
  wait(group_->send(tensors, static_cast<int>(peer), tag));
}

void BackedGroup::receive(at::Tensor& tensor, int64_t peer, int tag) {
  std::vector<at::Tensor> tensors{tensor};
  wait(group_->recv(tensors, static_cast<int>(peer), tag));
}

void BackedGroup::barrier() {
  wait(group_->barrier());
}

void BackedGroup::wait(const c10::intrusive_ptr<c10d::Work>& work) {
  const double start = base::steady_seconds();
  work->wait();
  seconds_waited_ += base::steady_seconds() - start;
}

}  // namespace lockstep::comm
