// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/group.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "lockstep/comm/mpi_backend.h"
#include "lockstep/site/launch.h"

namespace lockstep::comm {
namespace {

// Ends MPI with the scope, except while an error unwinds: the others would wait for us in vain, whereas a process that
// leaves without MPI_Finalize makes the launcher end them all.
class MpiScope {
 public:
  explicit MpiScope(const lockstep_mpi& mpi) : mpi_(mpi) { check_mpi(mpi, mpi.init(), "start"); }
  ~MpiScope() {
    if (std::uncaught_exceptions() == exceptions_) mpi_.finalize();
  }
  MpiScope(const MpiScope&) = delete;
  MpiScope& operator=(const MpiScope&) = delete;
  const lockstep_mpi& mpi() const { return mpi_; }

 private:
  const lockstep_mpi& mpi_;
  int exceptions_ = std::uncaught_exceptions();
};

class MpiGroup : public Group {
 public:
  explicit MpiGroup(const lockstep_mpi& mpi)
      : scope_(mpi),
        group_(
            c10::make_intrusive<c10d::ProcessGroup>(c10::make_intrusive<c10d::HashStore>(), mpi.rank(), mpi.size())) {
    group_->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::CUSTOM,
                       c10::make_intrusive<MpiBackend>(mpi));
    group_->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  }

  int64_t rank() const override { return group_->getRank(); }
  int64_t size() const override { return group_->getSize(); }
  c10::intrusive_ptr<c10d::ProcessGroup> group() override { return group_; }

  void all_reduce_sum(at::Tensor& tensor) override {
    std::vector<at::Tensor> tensors{tensor};
    wait(group_->allreduce(tensors));
  }
  void broadcast(at::Tensor& tensor, int64_t root) override {
    std::vector<at::Tensor> tensors{tensor};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    wait(group_->broadcast(tensors, options));
  }
  std::vector<at::Tensor> all_gather(const at::Tensor& tensor) override {
    std::vector<std::vector<at::Tensor>> out(1);
    for (int64_t i = 0; i < size(); ++i) out[0].push_back(at::empty_like(tensor));
    std::vector<at::Tensor> in{tensor};
    wait(group_->allgather(out, in));
    return out[0];
  }
  void barrier() override { wait(group_->barrier()); }
  [[noreturn]] void abort(int exit_code) override {
    scope_.mpi().abort(exit_code);
    std::_Exit(exit_code);
  }
  double seconds_waited() const override { return seconds_waited_; }

 private:
  void wait(const c10::intrusive_ptr<c10d::Work>& work) {
    const auto start = std::chrono::steady_clock::now();
    work->wait();
    seconds_waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  MpiScope scope_;  // first: MPI outlives the group's poller
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  double seconds_waited_ = 0;
};

}  // namespace

bool launched_by_mpi() {
  return site::read_launch().has_company;
}

Locality locality() {
  const site::Launch launch = site::read_launch();
  return {launch.local_rank, launch.local_size};
}

std::string broadcast_text(Group& group, std::string text, int64_t root) {
  at::Tensor length = at::full({1}, static_cast<int64_t>(text.size()), at::kLong);
  group.broadcast(length, root);
  text.resize(static_cast<size_t>(length.item<int64_t>()));
  if (text.empty()) return text;
  at::Tensor bytes = at::from_blob(text.data(), {static_cast<int64_t>(text.size())}, at::kByte);
  group.broadcast(bytes, root);
  return text;
}

std::vector<std::string> gather_texts(Group& group, const std::string& text) {
  std::vector<std::string> all;
  for (int64_t rank = 0; rank < group.size(); ++rank) all.push_back(broadcast_text(group, text, rank));
  return all;
}

std::unique_ptr<Group> join_group() {
  if (!launched_by_mpi()) return single_group();
  return std::make_unique<MpiGroup>(open_mpi_plugin());
}

}  // namespace lockstep::comm
