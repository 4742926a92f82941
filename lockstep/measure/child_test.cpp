// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/child.h"

#include <gtest/gtest.h>

namespace lockstep::measure {
namespace {

TEST(ChildTest, TellsHowItEnded) {
  EXPECT_EQ(run_child({"/bin/sh", "-c", "true"}, {}, 60).trouble, "");
  EXPECT_EQ(run_child({"/bin/sh", "-c", "exit 3"}, {}, 60).trouble, "exit code 3");
  EXPECT_EQ(run_child({"/bin/sh", "-c", "kill -9 $$"}, {}, 60).trouble, "killed by signal 9");
  EXPECT_EQ(run_child({"/no/such/program"}, {}, 60).exit_code, 127);
}

TEST(ChildTest, KillsAfterItsTime) {
  EXPECT_EQ(run_child({"/bin/sleep", "20"}, {}, 0.6).trouble, "not done in 1 s");
}

TEST(ChildTest, HandsTheEnvironmentOnAndKeepsTheLastWords) {
  const auto end = run_child({"/bin/sh", "-c", "echo first >&2; echo second >&2; echo $LOCKSTEP_WORD >&2"},
                             {{"LOCKSTEP_WORD", "last"}}, 60);
  EXPECT_EQ(end.last_words, "second last");
}

}  // namespace
}  // namespace lockstep::measure
