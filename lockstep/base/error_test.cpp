// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace lockstep::base {
namespace {

TEST(ErrorTest, CarriesBlameAndFix) {
  const Error error(Blame::user, "no such key", "remove it");
  EXPECT_EQ(error.exit_code(), 2);
  EXPECT_EQ(error.message(), "lockstep: user error: no such key\n  fix: remove it");
}

TEST(ErrorTest, EnsureNamesTheBrokenPromise) {
  EXPECT_NO_THROW(ensure(true, "never seen"));
  try {
    ensure(false, "ranks agree");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.blame(), Blame::bug);
    EXPECT_NE(std::string(error.what()).find("ranks agree"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("error_test.cpp"), std::string::npos);
  }
}

TEST(ErrorTest, ErrnoIsAMachineError) {
  errno = ENOSPC;
  try {
    throw_errno("cannot write x");
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 3);
    EXPECT_STREQ(error.what(), "cannot write x: No space left on device");
  }
}

}  // namespace
}  // namespace lockstep::base
