// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"

namespace lockstep::ranks {

TEST(LaunchTest, ReturnsTheExitCodeOfWhatItRan) {
  EXPECT_EQ(run_ranks({"sh", "-c", "exit 85"}), 85);
}

TEST(LaunchTest, ASecondInterruptEndsRanksThatDoNotStop) {
  const base::TemporaryFolder folder;
  signal(SIGINT, SIG_DFL);  // so that it can be seen when run_ranks() listens
  const auto listens = [] {
    struct sigaction now {};
    sigaction(SIGINT, nullptr, &now);
    return now.sa_handler != SIG_DFL;
  };
  const auto start = std::chrono::steady_clock::now();
  std::jthread user([&] {
    const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };
    while (!listens() || !std::filesystem::exists(folder.path() / "ready")) pause();
    kill(getpid(), SIGINT);
    while (!std::filesystem::exists(folder.path() / "asked")) pause();
    kill(getpid(), SIGINT);
  });
  const std::string script = base::text("cd '", folder.path().string(), "'; trap ': > asked' USR1; : > ready; ",
                                        "i=0; while [ $i -lt 6000 ]; do i=$((i + 1)); sleep 0.05; done");
  EXPECT_EQ(run_ranks({"sh", "-c", script}), 128 + SIGINT);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(LaunchTest, EveryRankOfAHostHasAGpu) {
  check_gpus(8, 2, 4);
  check_gpus(4, 0, 4);  // no allocation: this host alone
  check_gpus(2, 8, 1);
  EXPECT_THROW(check_gpus(5, 1, 4), base::Error);
  try {
    check_gpus(9, 2, 4);  // five on the first
    ADD_FAILURE();
  } catch (const base::Error& error) {
    EXPECT_NE(error.message().find("each of the 2 hosts has 4 GPUs"), std::string::npos) << error.message();
    EXPECT_EQ(error.fix(), "--ranks 8, or --device cpu");
  }
}

TEST(LaunchTest, HostsAreNamedWithTheirRanks) {
  const std::vector<site::Share> hosts{{"n1", 2}, {"n2", 1}};
  EXPECT_THAT(base::join(launch_line(Launcher::open_mpi, hosts, 3, {"env", "A=1", "x"}), " "),
              testing::AllOf(testing::HasSubstr("--host n1:2,n2:1 -x "), testing::EndsWith(" -n 3 env A=1 x")));
  EXPECT_EQ(base::join(launch_line(Launcher::mpich, hosts, 3, {"x"}), " "),
            "mpirun -bind-to none -hosts n1:2,n2:1 -n 3 x");
  EXPECT_EQ(base::join(launch_line(Launcher::srun, hosts, 3, {"x"}), " "),
            "srun --mpi=pmix --kill-on-bad-exit=1 --overlap --cpu-bind=none --ntasks=3 --nodes=2 --nodelist=n1,n2 "
            "--distribution=block x");
  EXPECT_EQ(base::join(launch_line(Launcher::mpich, {}, 3, {"x"}), " "), "mpirun -bind-to none -n 3 x");
}

TEST(LaunchTest, RanksOnOtherHostsGetTheEnvironmentThatIsMeantForThem) {
  setenv("LOCKSTEP_PASS", "MY_SITE_SETTING,NOT_SET", 1);
  setenv("MY_SITE_SETTING", "42", 1);
  setenv("NCCL_SOCKET_IFNAME", "ib0", 1);
  const std::string line = base::join(launch_line(Launcher::open_mpi, {{"n1", 1}, {"n2", 1}}, 2, {"x"}), " ");
  for (const char* name : {"MY_SITE_SETTING", "NCCL_SOCKET_IFNAME", "PATH"}) {
    EXPECT_THAT(line, testing::HasSubstr(base::text("-x ", name, " ")));
  }
  EXPECT_THAT(line, testing::Not(testing::HasSubstr("NOT_SET")));  // mpirun would warn of it
  EXPECT_THAT(base::join(launch_line(Launcher::open_mpi, {}, 2, {"x"}), " "), testing::Not(testing::HasSubstr("-x")));
  EXPECT_THAT(base::join(launch_line(Launcher::mpich, {{"n1", 1}}, 1, {"x"}), " "),
              testing::Not(testing::HasSubstr("-x")));
  for (const char* name : {"LOCKSTEP_PASS", "MY_SITE_SETTING", "NCCL_SOCKET_IFNAME"}) unsetenv(name);
}

TEST(LaunchTest, RanksOfOneHostTalkOverItsLoopbackInterface) {
  const auto line = [](const std::vector<site::Share>& hosts) {
    return base::join(launch_line(Launcher::open_mpi, hosts, 2, {"x"}), " ");
  };
  EXPECT_THAT(line({}), testing::HasSubstr(" --mca oob_tcp_if_include lo --mca btl_tcp_if_include lo "));
  EXPECT_THAT(line({{"n1", 1}, {"n2", 1}}), testing::Not(testing::HasSubstr("if_include")));
  setenv("LOCKSTEP_INTERFACE", "ib0", 1);
  EXPECT_THAT(line({{"n1", 1}, {"n2", 1}}), testing::HasSubstr(" --mca oob_tcp_if_include ib0 "));
  unsetenv("LOCKSTEP_INTERFACE");
}

TEST(LaunchTest, AWishToStopWaitsAtTheLauncherInsteadOfKillingIt) {
  const pid_t launcher = start_launcher(Launcher::open_mpi, {"sleep", "20"});
  EXPECT_EQ(asked_to_stop(launcher), 0);
  kill(launcher, SIGHUP);
  EXPECT_EQ(asked_to_stop(launcher), SIGHUP);
  kill(launcher, SIGTERM);
  EXPECT_EQ(asked_to_stop(launcher), SIGTERM);
  kill(launcher, SIGKILL);
  int status = 0;
  waitpid(launcher, &status, 0);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_EQ(asked_to_stop(launcher), 0);
}

TEST(LaunchTest, WithoutALauncherTheFixIsNamed) {
  const std::string path = std::getenv("PATH");
  const base::TemporaryFolder folder;
  setenv("PATH", folder.path().c_str(), 1);
  EXPECT_THROW(find_launcher({}), base::Error);
  EXPECT_EQ(find_launcher({}, Meet::on_gpus), Launcher::own);  // NCCL needs no MPI
  setenv("PATH", path.c_str(), 1);
}

}  // namespace lockstep::ranks
