// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/identity.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::run {
namespace {

TEST(IdentityTest, AnotherSplitIsRefusedAndAnOlderCheckpointIsNot) {
  spec::Job job;
  const base::Json saved = identity(job, "a", "b");
  EXPECT_NO_THROW(check_identity(saved, identity(job, "a", "b"), "x"));
  EXPECT_NO_THROW(check_identity(saved, identity(job, "a", ""), "x"));
  EXPECT_THROW(check_identity(saved, identity(job, "a", "c"), "x"), base::Error);
  EXPECT_THROW(check_identity(saved, identity(job, "c", "b"), "x"), base::Error);
  base::Json older = identity(job, "a", "");
  older.erase("training.ema_decay");  // as if the key were newer than the checkpoint
  EXPECT_NO_THROW(check_identity(older, identity(job, "a", "b"), "x"));
  job.training.ema_decay = 0.5;
  EXPECT_THROW(check_identity(older, identity(job, "a", ""), "x"), base::Error);
}

// The contents of files stand behind a "/" since they are looked at.
TEST(IdentityTest, AFingerprintOfAnEarlierVersionIsThePartBeforeTheSlash) {
  const spec::Job job;
  EXPECT_NO_THROW(check_identity(identity(job, "a", ""), identity(job, "a/x", ""), "x"));
  EXPECT_NO_THROW(check_identity(identity(job, "a/x", ""), identity(job, "a/x", ""), "x"));
  EXPECT_THROW(check_identity(identity(job, "a/x", ""), identity(job, "a/y", ""), "x"), base::Error);
  EXPECT_THROW(check_identity(identity(job, "a", ""), identity(job, "ab/x", ""), "x"), base::Error);
}

TEST(IdentityTest, ACheckpointOlderThanWindowsBeganInFullOrder) {
  spec::Job job;
  job.data.order = spec::SampleOrder::full;  // as a job is once its order is settled
  base::Json older = identity(job, "a", "");
  older.erase("data.order");
  EXPECT_EQ(order_of(older), spec::SampleOrder::full);
  EXPECT_NO_THROW(check_identity(older, identity(job, "a", ""), "x"));
  job.data.order = spec::SampleOrder::windows;
  EXPECT_EQ(order_of(identity(job, "a", "")), spec::SampleOrder::windows);
  EXPECT_THROW(check_identity(older, identity(job, "a", ""), "x"), base::Error);
}

TEST(IdentityTest, TellsTheKeyWithBothValues) {
  spec::Job before, now;
  before.data.order = now.data.order = spec::SampleOrder::full;
  EXPECT_EQ(difference(identity(before, "a", ""), identity(now, "a", "")), "");
  now.training.virtual_ranks = 4;
  EXPECT_EQ(difference(identity(before, "a", ""), identity(now, "a", "")), "training.virtual_ranks was 0, now 4");
}

}  // namespace
}  // namespace lockstep::run
