// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>

#include "lockstep/comm/call_record.h"
#include "lockstep/comm/group.h"
#include "lockstep/comm/group_contract.h"
#include "lockstep/site/mpi.h"
#include "tests/mpi/ranks.h"

namespace lockstep::comm {

class MpiContractTest : public ::testing::TestWithParam<ContractCase> {};

TEST_P(MpiContractTest, Holds) {
  GetParam().run(mpi_test::ranks(), c10::DeviceType::CPU);
}

INSTANTIATE_TEST_SUITE_P(All, MpiContractTest, ::testing::ValuesIn(kGroupContract),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(MpiGroupTest, SpreadsTextsOfAnyLength) {
  Group& group = mpi_test::ranks();
  EXPECT_EQ(broadcast_text(group, group.rank() == 1 ? "from the second" : "", 1), "from the second");
  const auto all = gather_texts(group, std::string(static_cast<size_t>(group.rank()), 'x'));
  ASSERT_EQ(static_cast<int64_t>(all.size()), group.size());
  for (size_t rank = 0; rank < all.size(); ++rank) EXPECT_EQ(all[rank], std::string(rank, 'x'));
}

TEST(MpiGroupTest, KnowsItsPlaceOnTheNode) {
  EXPECT_EQ(locality().size, mpi_test::ranks().size());
  EXPECT_EQ(locality().rank, mpi_test::ranks().rank());
}

// Processor seconds of this process, all its threads.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

TEST(MpiGroupTest, ARankThatWaitsLeavesItsCoreToOthers) {
  Group& group = mpi_test::ranks();
  constexpr int kSeconds = 4;
  group.barrier();
  const double before = processor_seconds();
  if (group.rank() == 0) std::this_thread::sleep_for(std::chrono::seconds(kSeconds));
  at::Tensor value = at::full({1000}, 1.0);
  group.all_reduce_sum(value);
  const double share = (processor_seconds() - before) / kSeconds;
  RecordProperty("idle_percent", std::to_string(100 * share));
  EXPECT_LE(share, .02);
}

template <class Call>
double best_seconds_of(Group& group, Call call) {
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    group.barrier();
    const auto start = std::chrono::steady_clock::now();
    call();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// MPI moves bytes while it is asked. Run without single copies as well (see tests.cmake), where that is in small
// pieces.
TEST(MpiGroupTest, MovesManyBytesNearlyAsFastAsAWaitThatSpins) {
  Group& group = mpi_test::ranks();
  at::Tensor value = at::ones({6'000'000});
  const lockstep_mpi& mpi = site::open_mpi_plugin();
  const double spinning = best_seconds_of(group, [&] {
    lockstep_mpi_request* request = nullptr;
    site::check_mpi(mpi, mpi.all_reduce_sum(value.data_ptr(), value.numel(), LOCKSTEP_MPI_F32, &request), "sum");
    site::check_mpi(mpi, mpi.wait(request), "wait");
  });
  const double polled = best_seconds_of(group, [&] { group.all_reduce_sum(value); });
  RecordProperty("polled_over_spinning", std::to_string(polled / spinning));
  EXPECT_LE(polled, 4 * spinning);  // 28 times as long while the poller slept between the pieces
}

TEST(MpiGroupTest, CountsTheSecondsItWaited) {
  Group& group = mpi_test::ranks();
  group.barrier();
  EXPECT_GT(group.seconds_waited(), 0);
}

// What a supervisor compares over ranks: the one that did not come has started fewer collectives.
TEST(MpiGroupTest, TellsAWatcherWhichCollectiveItWaitsIn) {
  Group& group = mpi_test::ranks();
  const auto* teller = dynamic_cast<const TellsCalls*>(&group);
  ASSERT_NE(teller, nullptr);
  group.barrier();
  const CallState before = teller->calls();
  EXPECT_EQ(before.waiting, "");
  EXPECT_EQ(before.started, before.answered);
  const bool late = group.rank() == 1;
  if (late) std::this_thread::sleep_for(std::chrono::seconds(3));
  std::jthread watcher([&] {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    const CallState now = teller->calls();
    if (late) return;
    EXPECT_EQ(now.waiting, "all-reduce");
    EXPECT_EQ(now.started, before.started + 1);
    EXPECT_EQ(now.answered, before.answered);
  });
  at::Tensor one = at::ones({1});
  group.all_reduce_sum(one);
  EXPECT_EQ(teller->calls().answered, before.answered + 1);
  EXPECT_FALSE(teller->calls().failed);
}

}  // namespace lockstep::comm
