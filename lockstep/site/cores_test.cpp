// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "lockstep/site/launch.h"

namespace lockstep::site {
namespace {

TEST(CoresTest, CountsAtLeastOneAndNoMoreThanThereAre) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), online_cores());
}

TEST(CoresTest, ObeysTheAffinityOfTheThread) {
  std::jthread([] {
    cpu_set_t allowed;
    ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
    int first = 0;
    while (!CPU_ISSET(first, &allowed)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(usable_cores(), 1);
  });
}

TEST(CoresTest, RanksShareThemAndEachHasOne) {
  EXPECT_EQ(cores_per_rank(8, 3), 2);
  EXPECT_EQ(cores_per_rank(2, 5), 1);
  EXPECT_EQ(cores_per_rank(), cores_per_rank(usable_cores(), read_launch().local_size));
}

TEST(CoresTest, ReadsTheQuotaOfACgroup) {
  EXPECT_DOUBLE_EQ(*quota_cores("150000 100000\n"), 1.5);
  EXPECT_EQ(quota_cores("max 100000\n"), std::nullopt);
  EXPECT_EQ(quota_cores("-1 100000"), std::nullopt);  // version 1: no quota
  EXPECT_EQ(quota_cores(""), std::nullopt);
}

}  // namespace
}  // namespace lockstep::site
