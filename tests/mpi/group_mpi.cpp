// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <limits>
#include <thread>

#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/call_record.h"
#include "lockstep/comm/group.h"
#include "lockstep/comm/group_contract.h"
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

// What this process has used of its cores so far, all its threads: a poll that sleeps is one switch.
struct Used {
  double seconds;
  int64_t switches;
};

Used used() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_nvcsw};
}

// 500 looks a second, and the denser first ones: some 1,250 in all. What a look costs is the machine's affair (0.5 to
// 3 % of a core were seen); a wait that spins takes a whole one.
TEST(MpiGroupTest, ARankThatWaitsLeavesItsCoreToOthers) {
  Group& group = mpi_test::ranks();
  constexpr int kSeconds = 2;
  group.barrier();
  const Used before = used();
  const auto start = std::chrono::steady_clock::now();
  if (group.rank() == 0) std::this_thread::sleep_for(std::chrono::seconds(kSeconds));
  at::Tensor value = at::full({1000}, 1.0);
  group.all_reduce_sum(value);
  const Used after = used();
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;  // longer on a busy machine
  EXPECT_LE(static_cast<double>(after.switches - before.switches), 2000 * waited.count() / kSeconds);
  EXPECT_LE(after.seconds - before.seconds, .2 * waited.count());
}

// MPI moves bytes while it is asked: a poller that sleeps between their pieces (some 500 here, where no process may
// read another's memory: see tests.cmake) takes 28 times as long. It may sleep while it waits for the others to come,
// which the best of some rounds leaves out: on a busy machine there may be many until all ranks had a good one.
TEST(MpiGroupTest, DoesNotSleepWhileManyBytesMove) {
  Group& group = mpi_test::ranks();
  at::Tensor value = at::ones({6'000'000});
  int64_t fewest = std::numeric_limits<int64_t>::max();
  constexpr int64_t kFew = 300;
  bool all_had_one = false;
  for (int round = 0; round < 200 && !all_had_one; ++round) {
    group.barrier();
    const int64_t before = used().switches;
    group.all_reduce_sum(value);
    fewest = std::min(fewest, used().switches - before);
    at::Tensor without = at::full({1}, fewest > kFew ? 1.0 : 0.0);  // ranks
    group.all_reduce_sum(without);
    all_had_one = without.const_data_ptr<float>()[0] < 0.5F;
  }
  RecordProperty("fewest_switches", std::to_string(fewest));
  EXPECT_LE(fewest, kFew);
}

TEST(MpiGroupTest, CountsTheSecondsItWaited) {
  Group& group = mpi_test::ranks();
  group.barrier();
  EXPECT_GT(group.seconds_waited(), 0);
}

void wait_until(const std::function<bool()>& holds) {
  for (int i = 0; i < 3000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

// What a supervisor compares over ranks: the one that did not come has started fewer collectives. It comes when rank 0
// has been seen to wait for it, which a file says: the group itself is what is looked at.
TEST(MpiGroupTest, TellsAWatcherWhichCollectiveItWaitsIn) {
  Group& group = mpi_test::ranks();
  const auto* teller = dynamic_cast<const TellsCalls*>(&group);
  ASSERT_NE(teller, nullptr);
  group.barrier();
  const CallState before = teller->calls();
  EXPECT_EQ(before.waiting, "");
  EXPECT_EQ(before.started, before.answered);
  const auto seen = std::filesystem::temp_directory_path() / base::text("lockstep-mpi-seen-", ::getppid());
  if (group.rank() == 1) wait_until([&] { return std::filesystem::exists(seen); });
  std::jthread watcher([&] {
    if (group.rank() != 0) return;
    wait_until([&] { return !teller->calls().waiting.empty(); });
    const CallState now = teller->calls();
    EXPECT_EQ(now.waiting, "all-reduce");
    EXPECT_EQ(now.started, before.started + 1);
    EXPECT_EQ(now.answered, before.answered);
    base::write_file(seen, "");
  });
  at::Tensor one = at::ones({1});
  group.all_reduce_sum(one);
  EXPECT_EQ(teller->calls().answered, before.answered + 1);
  EXPECT_FALSE(teller->calls().failed);
  watcher.join();
  group.barrier();
  if (group.rank() == 0) std::filesystem::remove(seen);
}

}  // namespace lockstep::comm
