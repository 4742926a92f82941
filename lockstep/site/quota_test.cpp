// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/quota.h"

#include <gtest/gtest.h>

#include "lockstep/site/fake_scheduler.h"

namespace lockstep::site {
namespace {

TEST(QuotaTest, ReadsTheRowOfQuota) {
  const Quota quota = parse_quota(
      "Disk quotas for user ann (uid 1001): \n"
      "     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace\n"
      "      /dev/sdb1  400000 1000000 1200000       0    5000       0   20000       0\n");
  EXPECT_EQ(quota.free_bytes, int64_t{800000} * 1024);
  EXPECT_EQ(quota.free_files, 15000);
}

TEST(QuotaTest, ReadsTheRowOfLustre) {
  const Quota quota = parse_quota("         /scratch 1500000* 1000000       0 6d23h 10 0 0 -\n");
  EXPECT_EQ(quota.free_bytes, 0);
  EXPECT_EQ(quota.free_files, std::nullopt);
  const Quota wrapped = parse_quota("/a/file/system/with/a/long/name\n  100  0  300  -  7  0  9  -\n");
  EXPECT_EQ(wrapped.free_bytes, 200 * 1024);
  EXPECT_EQ(wrapped.free_files, 2);
}

TEST(QuotaTest, KnowsNothingWhereNobodySays) {
  EXPECT_EQ(parse_quota(""), Quota{});
  EXPECT_EQ(parse_quota("Disk quotas for user ann (uid 1001): none\n"), Quota{});
  FakeScheduler path;
  EXPECT_EQ(read_quota("/", "ext4"), Quota{});
  path.install("lfs", "/scratch 1 0 11 - 0 0 0 -");
  EXPECT_EQ(read_quota("/scratch", "ext4"), Quota{});
  EXPECT_EQ(read_quota("/scratch", "lustre").free_bytes, 10 * 1024);
}

// quota(1): "If quota exits with a non-zero status, one or more filesystems are over quota".
TEST(QuotaTest, ReadsAnExceededQuotaThoughTheCommandFails) {
  FakeScheduler path;
  path.install_script("quota", "echo '/dev/sdb1 1190000* 1000000 1200000 6days 9 0 0 0'\nexit 1");
  EXPECT_EQ(read_quota("/", "ext4").free_bytes, int64_t{10000} * 1024);
}

TEST(QuotaTest, TheGroupsLimitCountsWhereItIsTighter) {
  FakeScheduler path;
  path.install_script("quota",
                      "[ $1 = -g ] && echo '/dev/sdb1 100 0 150 0 9 0 0 0' || echo '/dev/sdb1 100 0 900 0 9 0 11 0'");
  EXPECT_EQ(read_quota("/", "ext4"), (Quota{50 * 1024, 2, ""}));
}

TEST(QuotaTest, SaysWhichCommandDidNotAnswer) {
  FakeScheduler path;
  path.install_script("lfs", "exec /bin/sleep 60");
  EXPECT_EQ(read_quota("/scratch", "lustre", std::chrono::milliseconds(100)), (Quota{{}, {}, "lfs"}));
}

}  // namespace
}  // namespace lockstep::site
