// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/record_file.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/run/small_disk.h"

namespace lockstep::run {

TEST(RecordFileTest, AFullDiskLeavesWholeRecordsOnly) {
  const base::TemporaryFolder folder;
  const auto path = folder.path() / "records";
  RecordFile file(path);
  file.append("first\n");
  {
    const SmallDisk full(10);
    EXPECT_THROW(file.append("second\n"), base::Error);
    EXPECT_EQ(base::read_file(path), "first\n");
    file.append("2nd\n");  // still fits
  }
  file.append("third\n");
  EXPECT_EQ(base::read_file(path), "first\n2nd\nthird\n");
}

}  // namespace lockstep::run
