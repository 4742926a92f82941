// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/rank_life.h"

#include <gtest/gtest.h>

#include <new>

#include "lockstep/base/error.h"

namespace lockstep::ranks {
namespace {

const base::CommandLine kLifeLine{"eval", "RUN", "", {{"--ranks", "N", "how many"}}, ""};

int64_t asked_by(const std::vector<std::string>& words) {
  return ranks_asked(base::parse_arguments(kLifeLine, words));
}

TEST(RankLifeTest, OneRankUnlessMoreAreAskedFor) {
  EXPECT_EQ(asked_by({"run"}), 1);
  EXPECT_EQ(asked_by({"run", "--ranks", "3"}), 3);
  EXPECT_THROW(asked_by({"run", "--ranks", "0"}), base::Error);
}

TEST(RankLifeTest, OneRankNeedsNobodyToWatch) {
  const auto code = [](int64_t ranks) {
    return run_on_ranks({.ranks = ranks, .watch = [] { return 8; }, .work = [] { return 7; }});
  };
  EXPECT_EQ(code(1), 7);
  EXPECT_EQ(code(2), 8);
}

TEST(RankLifeTest, AloneAnErrorIsTheCallersToTell) {
  const auto code = work_as_rank("", comm::single_group, [](const Rank& rank) {
    EXPECT_EQ(rank.group.size(), 1);
    EXPECT_FALSE(rank.watched);
    rank.activity->enter(run::Phase::evaluating);
    return 7;
  });
  EXPECT_EQ(code, 7);
  const auto fails = [](const Rank&) -> int { throw base::Error(base::Blame::user, "no"); };
  EXPECT_THROW(work_as_rank("", comm::single_group, fails), base::Error);
}

TEST(RankLifeTest, MissingMemoryIsToldAsTheMachinesAlsoBeforeThereIsAGroup) {
  const auto exit_code = [](const std::function<std::unique_ptr<comm::Group>()>& join) {
    try {
      return work_as_rank("", join, [](const Rank&) -> int { throw std::bad_alloc(); });
    } catch (const base::Error& error) {
      return error.exit_code();
    }
  };
  EXPECT_EQ(exit_code(comm::single_group), 3);
  EXPECT_EQ(exit_code([]() -> std::unique_ptr<comm::Group> { throw std::bad_alloc(); }), 3);
}

}  // namespace
}  // namespace lockstep::ranks
