// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/relayed_backend.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/group.h"

namespace lockstep::comm {
namespace {

// Main memory stands for the GPU, threads for ranks.
RelayedBackend relayed(Group& group, const std::shared_ptr<CallRecord>& calls) {
  return {group.group()->getBackend(c10::DeviceType::CPU), at::kCPU, calls};
}

TEST(RelayedBackendTest, TellsWhichRankHasNotCome) {
  const std::vector<std::shared_ptr<CallRecord>> calls{std::make_shared<CallRecord>(), std::make_shared<CallRecord>()};
  run_thread_ranks(2, [&](Group& group) {
    const auto rank = static_cast<size_t>(group.rank());
    RelayedBackend backend = relayed(group, calls[rank]);
    if (rank == 1) {
      for (int i = 0; i < 1000 && calls[0]->state().waiting.empty(); ++i) ::usleep(10000);
      EXPECT_EQ(calls[0]->state(), (CallState{.waiting = "all-reduce", .started = 1, .answered = 0}));
      EXPECT_EQ(calls[1]->state(), CallState{});
    }
    std::vector<at::Tensor> value{at::full({3}, 1.0 + static_cast<double>(rank))};
    backend.allreduce(value, c10d::AllreduceOptions())->wait();
    EXPECT_EQ(value[0][2].item<double>(), 3);
    EXPECT_EQ(calls[rank]->state(), (CallState{.waiting = "", .started = 1, .answered = 1}));
  });
}

TEST(RelayedBackendTest, TellsThatAPeerIsGone) {
  const auto calls = std::make_shared<CallRecord>();
  auto groups = thread_groups(2);
  groups[1].reset();
  RelayedBackend backend = relayed(*groups[0], calls);
  std::vector<at::Tensor> value{at::full({3}, 1.0)};
  EXPECT_ANY_THROW(backend.allreduce(value, c10d::AllreduceOptions())->wait());
  EXPECT_TRUE(calls->state().failed);
  EXPECT_EQ(calls->state().waiting, "");
}

}  // namespace
}  // namespace lockstep::comm
