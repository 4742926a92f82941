// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/rows_file.h"

#include <gtest/gtest.h>

namespace lockstep::measure {
namespace {

TEST(RowsFileTest, WritesOneRowALineAndReadsThemBack) {
  const base::TemporaryFolder folder;
  const auto path = folder.path() / "rows.json";
  base::Json row = base::Json::object();
  row["seconds"] = 0.25;
  row["shape"] = base::Json::array({1, 2});
  const auto rows = base::Json::array({row, row});
  write_rows(path, rows);
  EXPECT_EQ(base::read_file(path), "[\n{\"seconds\":0.25,\"shape\":[1,2]},\n{\"seconds\":0.25,\"shape\":[1,2]}\n]\n");
  EXPECT_EQ(read_rows(path), rows);
  write_rows(path, base::Json());
  EXPECT_EQ(read_rows(path).items().size(), 0U);
}

}  // namespace
}  // namespace lockstep::measure
