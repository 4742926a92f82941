// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/folder_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/sources/pack/folder_state.h"

namespace lockstep::sources {
namespace {

TEST(FolderLockTest, LetsOneInAndTheNextWhenItHasLeft) {
  const base::TemporaryFolder folder;
  const base::Path set = folder.path() / "set";
  std::optional<FolderLock> first(set);
  try {
    const FolderLock second(set);
    FAIL() << "two at work";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_THAT(error.what(), testing::HasSubstr("another lockstep prep is at work here"));
  }
  first.reset();
  EXPECT_NO_THROW(FolderLock{set});
}

// The lock comes before the mark of a begun set: a kill between the two must not lock the user out.
TEST(FolderLockTest, AFolderThatHoldsTheLockAloneIsTakenForEmpty) {
  const base::TemporaryFolder folder;
  { const FolderLock lock(folder.path()); }
  EXPECT_FALSE(is_complete(folder.path(), base::Json::object()));
  base::write_file(folder.path() / kWork / "thesis.txt", "precious");
  EXPECT_THROW(is_complete(folder.path(), base::Json::object()), base::Error);
}

TEST(FolderLockTest, LeavesNothingBehindWhenTheWorkIsDone) {
  const base::TemporaryFolder folder;
  const FolderLock lock(folder.path());
  mark_begun(folder.path(), base::Json::object());
  remove_work(folder.path());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace lockstep::sources
