// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/plain_ranks.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::ranks {
namespace {

const base::CommandLine kRanksLine{"eval", "RUN", "", {{"--ranks", "N", "how many"}}, ""};

int shared(const std::vector<std::string>& words) {
  return share_over_ranks("eval", base::parse_arguments(kRanksLine, words), words, comm::single_group,
                          [](const Rank& rank) { return static_cast<int>(6 + rank.group.size()); });
}

TEST(RanksTest, OneRankNeedsNoLauncher) {
  EXPECT_EQ(shared({"run"}), 7);
  EXPECT_EQ(shared({"run", "--ranks", "1"}), 7);
}

TEST(RanksTest, NoRanksAreAUserError) {
  EXPECT_THROW(shared({"run", "--ranks", "0"}), base::Error);
}

}  // namespace
}  // namespace lockstep::ranks
