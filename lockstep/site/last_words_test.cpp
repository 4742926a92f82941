// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/last_words.h"

#include <gtest/gtest.h>

#include "lockstep/base/clock.h"
#include "lockstep/base/text.h"
#include "lockstep/site/launch.h"

namespace lockstep::site {
namespace {

std::string told(int64_t rank, std::chrono::milliseconds turn) {
  testing::internal::CaptureStderr();
  tell_last_words(base::Error(base::Blame::machine, "no memory", "buy some"), rank, turn);
  return testing::internal::GetCapturedStderr();
}

TEST(LastWordsTest, TheFirstRankSpeaksForAllAtOnce) {
  EXPECT_EQ(told(0, std::chrono::hours(1)), "lockstep: machine error: no memory\n  fix: buy some\n");
}

TEST(LastWordsTest, AnotherRankWaitsForItsTurnAndNamesItself) {
  const double start = base::steady_seconds();
  const std::string words = told(3, std::chrono::milliseconds(50));
  EXPECT_GE(base::steady_seconds() - start, 0.05);
  EXPECT_EQ(words, base::text("lockstep: machine error: rank 3 on ", host_name(), ": no memory\n  fix: buy some\n"));
}

}  // namespace
}  // namespace lockstep::site
