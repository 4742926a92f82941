// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/call_record.h"

#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

using Among = CallRecord::Among;

TEST(CallRecordTest, NamesTheOldestCallUnderWay) {
  CallRecord record;
  EXPECT_EQ(record.state(), CallState{});
  const int64_t first = record.begin("all-reduce", Among::all);
  const int64_t second = record.begin("barrier", Among::all);
  EXPECT_EQ(record.state(), (CallState{"all-reduce", 2, 0, false}));
  record.end(first, true);
  EXPECT_EQ(record.state(), (CallState{"barrier", 2, 1, false}));
  record.end(second, true);
  EXPECT_EQ(record.state(), (CallState{"", 2, 2, false}));
}

TEST(CallRecordTest, CountsOnlyWhatAllRanksDo) {
  CallRecord record;
  const int64_t ticket = record.begin("receive", Among::two);
  EXPECT_EQ(record.state(), (CallState{"receive", 0, 0, false}));
  record.end(ticket, true);
  EXPECT_EQ(record.state(), CallState{});
}

TEST(CallRecordTest, RemembersAFailure) {
  CallRecord record;
  record.end(record.begin("all-reduce", Among::all), false);
  record.end(record.begin("barrier", Among::all), true);
  EXPECT_TRUE(record.state().failed);
}

}  // namespace
}  // namespace lockstep::comm
