// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/post.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace lockstep::ranks {
namespace {

TEST(PostTest, OnlyAWatchedProcessHasOne) {
  EXPECT_FALSE(my_post("run"));
  ::setenv(kWorldVariable, "seven", 1);
  const auto in_run = my_post("run");
  ::setenv(kBeatsVariable, "elsewhere", 1);
  const auto beside = my_post("run");
  ::unsetenv(kWorldVariable);
  ::unsetenv(kBeatsVariable);
  ASSERT_TRUE(in_run && beside);
  EXPECT_EQ(in_run->world, "seven");
  EXPECT_EQ(in_run->beat, run::beat_path("run", 0));
  EXPECT_EQ(beside->beat, run::beat_path("elsewhere", 0));
  EXPECT_EQ(beside->latest, run::world_path("elsewhere"));
}

}  // namespace
}  // namespace lockstep::ranks
