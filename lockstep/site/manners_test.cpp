// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/manners.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/site/cores.h"
#include "lockstep/site/fake_scheduler.h"

namespace lockstep::site {
namespace {

TEST(MannersTest, LeaveALaptopAlone) {
  const FakeScheduler laptop;
  EXPECT_FALSE(is_login_node());
  EXPECT_EQ(threads_allowed(64), 64);
  EXPECT_EQ(behave_on_login_node(), usable_cores());
  EXPECT_EQ(std::getenv("OMP_NUM_THREADS"), nullptr);
  EXPECT_NO_THROW(refuse_on_login_node("train", std::vector<std::string>{"job.json"}, false));
}

TEST(MannersTest, LeaveAnAllocationAlone) {
  FakeScheduler site;
  site.install("sbatch");
  site.set("SLURM_JOB_ID", "42");
  EXPECT_FALSE(is_login_node());
  EXPECT_NO_THROW(refuse_on_login_node("train", std::vector<std::string>{"job.json"}, false));
}

TEST(MannersTest, RefuseWithTheSubmitLineToUseInstead) {
  FakeScheduler site;
  site.install("sbatch");
  EXPECT_EQ(threads_allowed(64), 2);
  EXPECT_EQ(threads_allowed(1), 1);
  try {
    refuse_on_login_node("train", std::vector<std::string>{"job.json", "--ranks", "4"}, false, std::chrono::hours(48));
    FAIL() << "not refused";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    EXPECT_NE(std::string(error.what()).find("login node"), std::string::npos);
    EXPECT_NE(error.fix().find("sbatch --job-name=lockstep-train --nodes=1 --exclusive --time=48:00:00 "
                               "--wrap 'lockstep train job.json --ranks 4'"),
              std::string::npos)
        << error.fix();
  }
}

TEST(MannersTest, BehaveWhenToldToRunHere) {
  FakeScheduler site;
  site.install("sbatch");
  const pid_t child = ::fork();  // niceness cannot be taken back without privilege
  if (child == 0) {
    refuse_on_login_node("train", std::vector<std::string>{"job.json"}, true);
    const char* threads = std::getenv("OMP_NUM_THREADS");
    const bool behaved = ::getpriority(PRIO_PROCESS, 0) == kLoginNice && threads != nullptr &&
                         std::atoi(threads) <= kLoginThreads && usable_cores() <= kLoginThreads;
    ::_exit(behaved ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(MannersTest, AreForgottenForTheJobsThatAreSubmitted) {
  const FakeScheduler laptop;  // clears OMP_NUM_THREADS, and puts it back
  ::setenv("OMP_NUM_THREADS", "2", 1);
  ::setenv("OMP_WAIT_POLICY", "passive", 1);
  forget_manners();
  // What this very process was started with stands in /proc/self/environ.
  const std::string began = base::read_file("/proc/self/environ");
  EXPECT_EQ(::getenv("OMP_NUM_THREADS") != nullptr, began.find("OMP_NUM_THREADS=") != std::string::npos);
  EXPECT_EQ(::getenv("OMP_WAIT_POLICY") != nullptr, began.find("OMP_WAIT_POLICY=") != std::string::npos);
}

}  // namespace
}  // namespace lockstep::site
