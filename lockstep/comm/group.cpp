// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/group.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>

#include "lockstep/comm/backed_group.h"
#include "lockstep/comm/mpi_backend.h"
#include "lockstep/site/launch.h"
#include "lockstep/site/mpi.h"

namespace lockstep::comm {
namespace {

class MpiGroup : public BackedGroup, public TellsCalls {
 public:
  explicit MpiGroup(std::unique_ptr<site::Mpi> scope,
                    const std::shared_ptr<CallRecord>& calls = std::make_shared<CallRecord>())
      : BackedGroup(c10::make_intrusive<MpiBackend>(scope->plugin(), calls)), scope_(std::move(scope)), calls_(calls) {}
  ~MpiGroup() override { release(); }  // MPI outlives the backend's poller

  [[noreturn]] void abort(int exit_code) override { scope_->abort(exit_code); }

  CallState calls() const override { return calls_->state(); }

 private:
  std::unique_ptr<site::Mpi> scope_;
  std::shared_ptr<CallRecord> calls_;
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
  return std::make_unique<MpiGroup>(std::make_unique<site::Mpi>());
}

}  // namespace lockstep::comm
