// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/file_tail.h"

#include <gtest/gtest.h>

namespace lockstep::base {
namespace {

TEST(FileTailTest, GivesWholeLinesFromTheEnd) {
  const TemporaryFolder folder;
  const Path file = folder.path() / "log";
  EXPECT_EQ(read_tail(file, 100), "");
  write_file(file, "one\ntwo\nthree\n");
  EXPECT_EQ(read_tail(file, 100), "one\ntwo\nthree\n");
  EXPECT_EQ(read_tail(file, 8), "three\n");
  write_file(file, "a line without an end");
  EXPECT_EQ(read_tail(file, 6), "an end");
}

}  // namespace
}  // namespace lockstep::base
