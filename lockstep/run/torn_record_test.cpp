// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/torn_record.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::run {

TEST(TornRecordTest, IsCutOffAndNeverInAFileBehindALink) {
  const base::TemporaryFolder folder;
  const auto path = folder.path() / "records", victim = folder.path() / "victim";
  base::write_file(path, "whole\nto");
  cut_torn_record(path, 6);
  EXPECT_EQ(base::read_file(path), "whole\n");
  base::write_file(victim, "whole\nand mine");
  std::filesystem::remove(path);
  std::filesystem::create_symlink(victim, path);
  EXPECT_THROW(cut_torn_record(path, 6), base::Error);
  EXPECT_EQ(base::read_file(victim), "whole\nand mine");
  EXPECT_THROW(cut_torn_record(folder.path() / "absent", 0), base::Error);
}

}  // namespace lockstep::run
