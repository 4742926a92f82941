// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/nccl_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "lockstep/base/error.h"

namespace lockstep::comm {
namespace {

TEST(NcclGroupTest, RanksMeetWhereNobodyElseCanEnter) {
  const base::TemporaryFolder folder;
  const auto mine = folder.path() / "mine";
  make_private_folder(mine);
  make_private_folder(mine);  // the second rank finds it
  struct stat found {};
  ASSERT_EQ(stat(mine.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700U);
}

TEST(NcclGroupTest, AnOpenFolderIsRefused) {
  const base::TemporaryFolder folder;
  const auto open = folder.path() / "open";
  ASSERT_EQ(mkdir(open.c_str(), 0755), 0);
  ASSERT_EQ(chmod(open.c_str(), 0755), 0);
  try {
    make_private_folder(open);
    FAIL() << "taken";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.message(), ::testing::HasSubstr("chmod 700"));
  }
}

TEST(NcclGroupTest, ALinkToAPrivateFolderIsRefused) {
  const base::TemporaryFolder folder;
  make_private_folder(folder.path() / "mine");
  std::filesystem::create_directory_symlink(folder.path() / "mine", folder.path() / "link");
  EXPECT_THROW(make_private_folder(folder.path() / "link"), base::Error);
}

TEST(NcclGroupTest, OneProcessAloneNeedsNoNccl) {
  const base::TemporaryFolder folder;
  EXPECT_EQ(join_cuda_group(at::Device(at::kCUDA, 0), folder.path())->size(), 1);
}

}  // namespace
}  // namespace lockstep::comm
