// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/recording_pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/forecast/invented_step.h"

namespace lockstep::planning {
namespace {

std::vector<forecast::Recording> several() {
  std::vector<forecast::Recording> all;
  for (const char* precision : {"fp32", "bf16"}) {
    for (const int64_t batch : {16, 48}) {
      for (const bool reduced : {false, true}) {
        all.push_back(forecast::invented_step({.precision = precision, .reduced = reduced, .micro_batch = batch}));
      }
    }
  }
  return all;
}

TEST(RecordingPackTest, GivesBackWhatWasPacked) {
  EXPECT_EQ(unpack_recordings(pack_recordings(several())), several());
  EXPECT_EQ(unpack_recordings(pack_recordings({})), std::vector<forecast::Recording>());
}

TEST(RecordingPackTest, KeepsEveryMember) {
  forecast::Recording odd = forecast::invented_step({.precision = "fp32", .micro_batch = 3});
  odd.attention = "flash";
  odd.layout = forecast::Layout::contiguous;
  odd.estimated = {"aten::strange"};
  odd.operators[1].flops = 0.25;  // not whole
  odd.operators[2].bytes = 1e18;  // beyond what a double counts by ones
  odd.operators[3].shape.clear();
  odd.events.push_back({.kind = forecast::EventKind::collective,
                        .id = 5,
                        .bytes = int64_t{1} << 45,
                        .collective = forecast::CollectiveKind::send,
                        .thread = 1});
  odd.events.push_back({.kind = forecast::EventKind::wait, .id = 5});
  EXPECT_EQ(unpack_recordings(pack_recordings({odd, several()[0], odd})),
            (std::vector<forecast::Recording>{odd, several()[0], odd}));
}

TEST(RecordingPackTest, WhatRepeatsTakesNoSpace) {
  std::vector<forecast::Recording> one = {several()[0]};
  std::vector<forecast::Recording> many(50, several()[0]);
  EXPECT_LT(pack_recordings(many).size(), pack_recordings(one).size() + 100);
}

TEST(RecordingPackTest, RefusesWhatIsCutOrChanged) {
  const std::string packed = pack_recordings(several());
  EXPECT_THROW(unpack_recordings(""), base::Error);
  EXPECT_THROW(unpack_recordings("lockstep recordings 2\n"), base::Error);
  for (size_t size = 0; size < packed.size(); size += 7) {
    EXPECT_THROW(unpack_recordings(packed.substr(0, size)), base::Error) << size;
  }
  std::string changed = packed;
  changed[packed.size() / 2] ^= 1;
  EXPECT_THROW(unpack_recordings(changed), base::Error);
}

}  // namespace
}  // namespace lockstep::planning
