// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/disk.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::run {
namespace {

TEST(RealDiskTest, WritesRenamesAndRemoves) {
  const base::TemporaryFolder temporary;
  const auto disk = real_disk();
  disk->make_folder(temporary.path() / "a");
  auto file = disk->create(temporary.path() / "a" / "f");
  const std::string content = "content";
  file->write(std::as_bytes(std::span(content.data(), content.size())));
  file->sync();
  file->close();
  disk->rename(temporary.path() / "a", temporary.path() / "b");
  disk->sync_folder(temporary.path());
  EXPECT_EQ(base::read_file(temporary.path() / "b" / "f"), "content");
  disk->remove(temporary.path() / "b");
  EXPECT_TRUE(std::filesystem::is_empty(temporary.path()));
}

TEST(RealDiskTest, KnowsTheFreeSpace) {
  const base::TemporaryFolder temporary;
  EXPECT_GT(real_disk()->free_bytes(temporary.path()), 0U);
  EXPECT_THROW(real_disk()->free_bytes(temporary.path() / "none"), base::Error);
}

TEST(RealDiskTest, FailedRenameIsAMachineError) {
  const base::TemporaryFolder temporary;
  try {
    real_disk()->rename(temporary.path() / "none", temporary.path() / "b");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::machine);
  }
}

}  // namespace
}  // namespace lockstep::run
