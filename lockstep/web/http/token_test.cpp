// SPDX-License-Identifier: Apache-2.0
#include "lockstep/web/http/token.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "lockstep/base/error.h"

namespace lockstep::web {
namespace {

TEST(TokenTest, IsMadeOnceForItsOwnerAlone) {
  const base::TemporaryFolder folder;
  const base::Path file = folder.path() / "token";
  const std::string token = token_in(file);
  EXPECT_EQ(token.size(), 64U);
  EXPECT_EQ(token_in(file), token);
  struct stat found {};
  ASSERT_EQ(::stat(file.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600U);
  EXPECT_NE(random_token(), random_token());
}

TEST(TokenTest, WhatOthersMayReadIsNoSecret) {
  const base::TemporaryFolder folder;
  const base::Path file = folder.path() / "token";
  token_in(file);
  ASSERT_EQ(::chmod(file.c_str(), 0640), 0);
  EXPECT_THROW(token_in(file), base::Error);
}

TEST(TokenTest, TakesNeitherLinksNorOtherFiles) {
  const base::TemporaryFolder folder;
  token_in(folder.path() / "token");
  std::filesystem::create_symlink("token", folder.path() / "link");
  EXPECT_THROW(token_in(folder.path() / "link"), base::Error);
  base::write_file(folder.path() / "words", "hello\n");
  ASSERT_EQ(::chmod((folder.path() / "words").c_str(), 0600), 0);
  EXPECT_THROW(token_in(folder.path() / "words"), base::Error);
  EXPECT_THROW(token_in(folder.path() / "absent" / "token"), base::Error);
}

}  // namespace
}  // namespace lockstep::web
