// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/collectives.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/site/fake_scheduler.h"

namespace lockstep::measure {

TEST(CollectivesTest, EverySizeIsTimedInEveryRound) {
  comm::run_thread_ranks(2, [](comm::Group& group) {
    const auto times = time_all_reduce(group, {4, 3 << 20}, 3);
    ASSERT_EQ(times.size(), 2U);
    for (const auto& time : times) {
      ASSERT_EQ(time.seconds.size(), 3U);
      for (const double seconds : time.seconds) EXPECT_GT(seconds, 0);
    }
    if (group.rank() != 0) return;
    const auto rows = collective_rows(times, 2, "lockstep bench collectives");
    EXPECT_EQ(rows.items()[1].at("bytes").as_int(), 3 << 20);
    EXPECT_LE(rows.items()[1].at("fastest").as_double(), rows.items()[1].at("seconds").as_double());
  });
}

TEST(CollectivesTest, RanksAreStartedWithTheSameWords) {
  site::FakeScheduler here;  // whatever is installed on this machine
  here.install("mpirun", "mpirun (Open MPI) 4.1.4");
  const std::string line = base::join(bench_in_ranks({"ddp", "--ranks", "2", "--worker"}, 2), " ");
  EXPECT_NE(line.find(" -n 2 "), std::string::npos) << line;
  EXPECT_TRUE(line.ends_with(" bench ddp --worker")) << line;
  EXPECT_TRUE(base::join(bench_in_ranks({"ddp", "--ranks=2"}, 2), " ").ends_with(" bench ddp"));
}

TEST(CollectivesTest, SpeaksToTheMpirunThatIsHere) {
  site::FakeScheduler here;
  here.install("mpirun", "HYDRA build details:");
  const std::string line = base::join(bench_in_ranks({"collectives", "--ranks", "2"}, 2), " ");
  EXPECT_TRUE(line.starts_with("mpirun -bind-to none -n 2 ")) << line;
  here.install("mpirun", "mpirun (Open MPI) 4.1.4");
  EXPECT_NE(base::join(bench_in_ranks({"collectives"}, 2), " ").find("--oversubscribe"), std::string::npos);
}

TEST(CollectivesTest, SaysWhenNothingStartsRanksHere) {
  const site::FakeScheduler laptop;
  EXPECT_THROW(bench_in_ranks({"collectives"}, 2), base::Error);
}

TEST(CollectivesTest, HalvesOfTheNumbersAreSummedInTheSameBuckets) {
  comm::run_thread_ranks(2, [](comm::Group& group) {
    const auto times = time_all_reduce(group, {2 << 20}, 2, spec::ReducePrecision::bf16);
    ASSERT_EQ(times.size(), 1U);
    EXPECT_EQ(times[0].bytes, 2 << 20);
    EXPECT_EQ(times[0].seconds.size(), 2U);
  });
}

}  // namespace lockstep::measure
