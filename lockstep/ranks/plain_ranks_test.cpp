// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/plain_ranks.h"

#include <gtest/gtest.h>

#include <new>

#include "lockstep/base/error.h"

namespace lockstep::ranks {
namespace {

const base::CommandLine kRanksLine{"eval", "RUN", "", {{"--ranks", "N", "how many"}}, ""};

TEST(RanksTest, OneRankNeedsNoLauncher) {
  EXPECT_FALSE(start_ranks("eval", base::parse_arguments(kRanksLine, {"run"}), {"run"}).has_value());
  EXPECT_FALSE(start_ranks("eval", base::parse_arguments(kRanksLine, {"run", "--ranks", "1"}), {"run"}).has_value());
}

TEST(RanksTest, NoRanksAreAUserError) {
  EXPECT_THROW(start_ranks("eval", base::parse_arguments(kRanksLine, {"run", "--ranks", "0"}), {}), base::Error);
}

TEST(RanksTest, AloneAnErrorIsTheCallersToTell) {
  const auto group = comm::single_group();
  EXPECT_EQ(run_as_rank(*group, [](run::Activity&) { return 7; }), 7);
  EXPECT_THROW(run_as_rank(*group, [](run::Activity&) -> int { throw base::Error(base::Blame::user, "no"); }),
               base::Error);
}

TEST(RanksTest, MissingMemoryIsToldAsTheMachines) {
  const auto group = comm::single_group();
  try {
    run_as_rank(*group, [](run::Activity&) -> int { throw std::bad_alloc(); });
    ADD_FAILURE();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.exit_code(), 3);
  }
}

}  // namespace
}  // namespace lockstep::ranks
