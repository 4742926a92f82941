// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/remote_shell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/site/command.h"
#include "lockstep/site/fake_scheduler.h"

namespace lockstep::site {
namespace {

const char* agent() {
  return std::getenv("OMPI_MCA_plm_rsh_agent");
}

// Like the real one: HOST PROGRAM ARGUMENTS, and no shell reads the program's name.
constexpr const char* kTmrsh = "host=$1; shift; echo \"on $host\"; exec \"$@\"";

TEST(RemoteShellTest, StartsALineForAShellThroughPbs) {
  FakeScheduler site;
  site.set("PBS_JOBID", "15.n1");
  site.install_script("pbs_tmrsh", kTmrsh);
  const RemoteShell shell(read_scheduler());
  EXPECT_STREQ(shell.name(), "pbs_tmrsh");
  ASSERT_TRUE(agent());
  // As mpirun calls it: the options of ssh, the host, and one line.
  std::vector<std::string> line = base::split(agent(), ' ');
  line.insert(line.end(), {"-x", "n2", "A=1 ; export A ; echo $A two"});
  const auto said = run_for_output(line, std::chrono::seconds(60));
  EXPECT_EQ(said, "on n2\n1 two\n");
}

TEST(RemoteShellTest, FindsItWhereTheUserHadIt) {
  FakeScheduler site;
  const base::TemporaryFolder pbs;
  base::write_file(pbs.path() / "pbs_tmrsh", "#!/bin/sh\n");
  std::filesystem::permissions(pbs.path() / "pbs_tmrsh", std::filesystem::perms::owner_all);
  site.set("PBS_JOBID", "15.n1");
  site.set("PBS_O_PATH", base::text("/usr/bin:", pbs.path().string(), ":/bin"));
  EXPECT_STREQ(RemoteShell(read_scheduler()).name(), "pbs_tmrsh");
}

TEST(RemoteShellTest, LeavesSshWhereItIsWanted) {
  FakeScheduler site;
  site.install_script("pbs_tmrsh", kTmrsh);
  EXPECT_STREQ(RemoteShell(read_scheduler()).name(), "ssh");  // no job
  site.set("PBS_JOBID", "15.n1");
  site.set(kRemoteShellVariable, "ssh");
  EXPECT_STREQ(RemoteShell(read_scheduler()).name(), "ssh");
  ::unsetenv(kRemoteShellVariable);
  ::setenv("OMPI_MCA_plm_rsh_agent", "blaunch", 1);  // the user's own
  EXPECT_STREQ(RemoteShell(read_scheduler()).name(), "ssh");
  EXPECT_STREQ(agent(), "blaunch");
  ::unsetenv("OMPI_MCA_plm_rsh_agent");
  { const RemoteShell shell(read_scheduler()); }
  EXPECT_EQ(agent(), nullptr);
}

TEST(RemoteShellTest, SaysWhenItIsNotThere) {
  FakeScheduler site;
  site.set("PBS_JOBID", "15.n1");
  EXPECT_STREQ(RemoteShell(read_scheduler()).name(), "ssh");
  site.set(kRemoteShellVariable, "pbs_tmrsh");
  EXPECT_THROW(RemoteShell{read_scheduler()}, base::Error);
}

}  // namespace
}  // namespace lockstep::site
