// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/read_rings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/base/error.h"

namespace lockstep::measure {
namespace {

TEST(ReadRingsTest, ReadsEveryPieceInEachWayAndLeavesNoFileBehind) {
  const base::TemporaryFolder folder;
  const RingBench bench{
      .folder = folder.path(), .file_bytes = 100'000, .sizes = {1'000, 32'768}, .depth = 4, .rounds = 3};
  const RingFigures figures = bench_rings(bench);
  ASSERT_EQ(figures.rows.size() + 4 * figures.left_out.size(), 8u);
  for (const RingRow& row : figures.rows) {
    EXPECT_EQ(row.reads, row.size == 1'000 ? 100 : 3);
    EXPECT_GT(row.bytes_per_second(), 0);
  }
  EXPECT_EQ(figures.rows.back().ring, "pread");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  const base::Json rows = ring_rows(bench, figures, "a command");
  EXPECT_EQ(rows.items().size(), figures.rows.size());
  EXPECT_EQ(rows.items().back().at("what").as_string(), "reads of 32 KiB, warm, pread");
  EXPECT_THAT(ring_text(figures), testing::HasSubstr("CPU us a read"));
}

TEST(ReadRingsTest, RefusesPiecesLargerThanTheFileAndAFolderThatIsNotThere) {
  EXPECT_THROW(bench_rings({.folder = ".", .file_bytes = 10, .sizes = {11}}), base::Error);
  const base::TemporaryFolder folder;
  EXPECT_THROW(bench_rings({.folder = folder.path() / "none", .file_bytes = 10, .sizes = {10}}), base::Error);
}

}  // namespace
}  // namespace lockstep::measure
