// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/faulty_disk.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::run {
namespace {

void put(Disk& disk, const base::Path& path, const std::string& content, bool sync) {
  const auto file = disk.create(path);
  file->write(std::as_bytes(std::span(content.data(), content.size())));
  if (sync) file->sync();
  file->close();
}

TEST(FaultyDiskTest, FailsTheActItWasToldTo) {
  const base::TemporaryFolder temporary;
  FaultyDisk disk(FaultyDisk::Fault::fail, 1);  // create is act 0, write act 1
  EXPECT_THROW(put(disk, temporary.path() / "a", "1234", true), base::Error);
  EXPECT_EQ(base::read_file(temporary.path() / "a"), "12");
  EXPECT_NO_THROW(put(disk, temporary.path() / "a", "1234", true));
}

TEST(FaultyDiskTest, LosesWhatWasNotSynced) {
  const base::TemporaryFolder temporary;
  FaultyDisk disk(FaultyDisk::Fault::none, 0);
  put(disk, temporary.path() / "synced", "1234", true);
  put(disk, temporary.path() / "torn", "1234", false);
  put(disk, temporary.path() / "old", "old!", true);
  put(disk, temporary.path() / "new", "new!", true);
  disk.rename(temporary.path() / "new", temporary.path() / "old");
  disk.lose_unsynced();
  EXPECT_EQ(base::read_file(temporary.path() / "synced"), "1234");
  EXPECT_EQ(base::read_file(temporary.path() / "torn"), "12");
  EXPECT_EQ(base::read_file(temporary.path() / "old"), "old!");
}

TEST(FaultyDiskTest, LosesFoldersWhoseNamesWereNotSynced) {
  const base::TemporaryFolder temporary;
  const auto& root = temporary.path();
  FaultyDisk disk(FaultyDisk::Fault::none, 0);
  disk.make_folder(root / "synced" / "inner");
  disk.make_folder(root / "other");
  disk.sync_folder(root);
  disk.make_folder(root / "lost");
  put(disk, root / "lost" / "file", "1234", true);  // what is in it does not matter
  disk.make_folder(root / "draft");
  disk.rename(root / "draft", root / "final");
  disk.lose_unsynced();
  EXPECT_TRUE(std::filesystem::exists(root / "synced"));
  EXPECT_TRUE(std::filesystem::exists(root / "other"));
  EXPECT_FALSE(std::filesystem::exists(root / "synced" / "inner"));
  EXPECT_FALSE(std::filesystem::exists(root / "lost"));
  EXPECT_FALSE(std::filesystem::exists(root / "final"));
  EXPECT_FALSE(std::filesystem::exists(root / "draft"));
}

}  // namespace
}  // namespace lockstep::run
