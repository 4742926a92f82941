// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/interface.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "lockstep/base/text.h"
#include "lockstep/site/launch.h"

namespace lockstep::site {
namespace {

using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(InterfaceTest, RanksOnOneHostUseTheLoopbackInterface) {
  unsetenv(kInterfaceVariable);
  EXPECT_EQ(rank_interface(true), "lo");
  EXPECT_EQ(rank_interface(false), "");
  setenv(kInterfaceVariable, "ib0", 1);
  EXPECT_EQ(rank_interface(true), "ib0");
  EXPECT_EQ(rank_interface(false), "ib0");
  unsetenv(kInterfaceVariable);
}

TEST(InterfaceTest, KnowsWhenALauncherLeavesThisHost) {
  EXPECT_TRUE(all_ranks_here({{host_name(), 2}}));
  EXPECT_TRUE(all_ranks_here({{host_name() + ".cluster", 2}}));
  EXPECT_FALSE(all_ranks_here({{host_name(), 1}, {"other", 1}}));
  EXPECT_FALSE(all_ranks_here({{"other", 2}}));
  EXPECT_TRUE(all_ranks_here({}));
  setenv("OMPI_MCA_orte_default_hostfile", "hosts", 1);
  EXPECT_FALSE(all_ranks_here({}));
  unsetenv("OMPI_MCA_orte_default_hostfile");
}

TEST(InterfaceTest, WhatTheUserHasToldOpenMpiCounts) {
  EXPECT_EQ(base::join(interface_words("ib0"), " "), "--mca oob_tcp_if_include ib0 --mca btl_tcp_if_include ib0");
  EXPECT_TRUE(interface_words("").empty());
  setenv("OMPI_MCA_oob_tcp_if_exclude", "eth1", 1);
  EXPECT_EQ(base::join(interface_words("lo"), " "), "--mca btl_tcp_if_include lo");
  unsetenv("OMPI_MCA_oob_tcp_if_exclude");
}

TEST(InterfaceTest, OnlyWhoStaysOnThisHostListensThereAlone) {
  EXPECT_THAT(launcher_environment({"mpirun", "--mca", "oob_tcp_if_include", "ib0"}),
              Not(Contains(HasSubstr("liblockstep_listen"))));
  const std::vector<std::string> here{"mpirun", "--mca", "oob_tcp_if_include", "lo"};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "liblockstep_listen.so is left out where a sanitizer's library must be the first";
#endif
  const char* before = std::getenv("LD_PRELOAD");
  const std::string preloaded = before ? before : "";
  unsetenv("LD_PRELOAD");
  EXPECT_THAT(launcher_environment(here), Contains(EndsWith("/liblockstep_listen.so")));
  EXPECT_EQ(std::getenv("LD_PRELOAD"), nullptr);  // ours stays as it is
  setenv("LD_PRELOAD", "libfirst.so", 1);
  EXPECT_THAT(launcher_environment(here), Contains(StartsWith("LD_PRELOAD=libfirst.so:/")));
  unsetenv("LD_PRELOAD");
  if (before) setenv("LD_PRELOAD", preloaded.c_str(), 1);
}

}  // namespace
}  // namespace lockstep::site
