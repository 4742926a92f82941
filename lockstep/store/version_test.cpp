// SPDX-License-Identifier: Apache-2.0
#include "lockstep/store/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/run/small_disk.h"
#include "lockstep/store/small_version.h"

namespace lockstep::store {
namespace {

using testing::HasSubstr;

TEST(VersionTest, TheSameContentIsTheSameVersion) {
  const base::TemporaryFolder folder;
  const std::string id = write_version(folder.path(), small_parts("weights"));
  EXPECT_EQ(id.size(), 64U);
  EXPECT_EQ(write_version(folder.path(), small_parts("weights")), id);
  EXPECT_NE(write_version(folder.path(), small_parts("others")), id);
  EXPECT_EQ(damage(folder.path() / id), "");
  EXPECT_EQ(bytes_of(folder.path() / id), 9);
  EXPECT_EQ(base::list_folder(folder.path()).size(), 2U);
}

TEST(VersionTest, AFlippedByteInAnyFileIsNoticedAndNamed) {
  const base::TemporaryFolder folder;
  const base::Path version = folder.path() / write_version(folder.path(), small_parts("weights"));
  for (const char* name : {"job.json", "weights.safetensors", "version.json"}) {
    const std::string good = base::read_file(version / name);
    for (size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ 1);
      base::write_file(version / name, bad);
      EXPECT_THAT(damage(version), HasSubstr(name)) << i;
    }
    base::write_file(version / name, good + "x");
    EXPECT_THAT(damage(version), HasSubstr(name));
    std::filesystem::remove(version / name);
    EXPECT_THAT(damage(version), HasSubstr(name));
    base::write_file(version / name, good);
  }
  EXPECT_EQ(damage(version), "");
}

TEST(VersionTest, AFileThatHasGrownByAHoleIsNotRead) {
  const base::TemporaryFolder folder;
  const base::Path version = folder.path() / write_version(folder.path(), small_parts("weights"));
  std::filesystem::resize_file(version / "weights.safetensors", uintmax_t{1} << 42);
  EXPECT_EQ(damage(version), "weights.safetensors has 4398046511104 bytes instead of 7");
}

TEST(VersionTest, ADamagedOneIsNotTakenForTheSame) {
  const base::TemporaryFolder folder;
  const std::string id = write_version(folder.path(), small_parts("weights"));
  base::write_file(folder.path() / id / "weights.safetensors", "weighty");
  EXPECT_THROW(write_version(folder.path(), small_parts("weights")), base::Error);
  EXPECT_EQ(base::list_folder(folder.path()).size(), 1U);  // and the draft is gone
}

TEST(VersionTest, AFullDiskLeavesNothingBehind) {
  const base::TemporaryFolder folder;
  {
    const run::SmallDisk small(1000);
    EXPECT_THROW(write_version(folder.path(), small_parts(std::string(2000, 'x'))), base::Error);
  }
  EXPECT_TRUE(base::list_folder(folder.path()).empty());
}

}  // namespace
}  // namespace lockstep::store
