// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/train/launch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "lockstep/base/text.h"

namespace lockstep::verbs {

TEST(LaunchTest, GivesEveryWordButRanksToTheRanks) {
  const auto line = mpirun_line("/x/lockstep", "train", {"job.json", "--ranks", "2", "--set", "a=1"}, 2, false);
  EXPECT_EQ(base::join(line, " "),
            "mpirun -q --bind-to none --oversubscribe -n 2 /x/lockstep train job.json --set a=1");
}

TEST(LaunchTest, RootNeedsALeaveOfItsOwn) {
  const auto line = mpirun_line("/x/lockstep", "train", {"--ranks=3", "job.json"}, 3, true);
  EXPECT_EQ(base::join(line, " "),
            "mpirun -q --bind-to none --oversubscribe --allow-run-as-root -n 3 /x/lockstep train job.json");
}

TEST(LaunchTest, ReturnsTheExitCodeOfWhatItRan) {
  EXPECT_EQ(run_ranks({"sh", "-c", "exit 85"}), 85);
}

TEST(LaunchTest, ASecondInterruptEndsRanksThatDoNotStop) {
  const auto start = std::chrono::steady_clock::now();
  std::jthread user([] {
    for (int i = 0; i < 2; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      kill(getpid(), SIGINT);
    }
  });
  EXPECT_EQ(run_ranks({"sh", "-c", "trap '' USR1; exec sleep 30"}), 128 + SIGINT);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

}  // namespace lockstep::verbs
