// SPDX-License-Identifier: Apache-2.0
#include "lockstep/results/part_files.h"

#include <gtest/gtest.h>

#include "lockstep/base/text.h"

namespace lockstep::results {
namespace {

std::string numbered(int64_t image, const std::string& model = "m") {
  return record_line({base::text(image), "abc", {3, "x"}, model, "t"}, base::Json::object());
}

int64_t number_in(const RecordHead& head) {
  return head.model == "m" ? std::stoll(head.path) : -1;
}

std::vector<std::string> all_of(const RecordIndex& index) {
  std::vector<std::string> records;
  index.for_each([&](int64_t, std::string_view record) { records.emplace_back(record); });
  return records;
}

TEST(PartFilesTest, RecordsOfAllRanksComeInTheOrderOfTheImages) {
  const base::TemporaryFolder folder;
  PartWriter(folder.path(), 1).append({numbered(2), numbered(3)});
  PartWriter(folder.path(), 0).append({numbered(0)});
  PartWriter(folder.path(), 0).append({numbered(1)});  // goes on
  base::write_file(folder.path() / "other", "");
  RecordIndex index(5);
  for (const auto& file : part_files(folder.path())) index.add_part(file, number_in);
  EXPECT_EQ(part_files(folder.path()).size(), 2U);
  EXPECT_EQ(index.done(), 4);
  EXPECT_FALSE(index.has(4));
  EXPECT_EQ(all_of(index), (std::vector<std::string>{numbered(0), numbered(1), numbered(2), numbered(3)}));
}

// Whatever a kill or a failing disk leaves at the end, the records before it count, and those that are written behind
// it do.
TEST(PartFilesTest, ATornEndCostsItsOwnRecordAlone) {
  const base::TemporaryFolder whole;
  PartWriter(whole.path(), 0).append({numbered(0), numbered(1)});
  const std::string content = base::read_file(part_files(whole.path())[0]);
  const size_t first = content.find('\n', 1) + 1;
  for (size_t size = 0; size <= content.size(); ++size) {
    const base::TemporaryFolder folder;
    base::FileWriter(folder.path() / "rank-00000.part", base::FileWriter::Mode::truncate)
        .write(std::string_view(content).substr(0, size));
    PartWriter(folder.path(), 0).append({numbered(2)});
    RecordIndex index(3);
    index.add_part(part_files(folder.path())[0], number_in);
    EXPECT_EQ(index.has(0), size + 1 >= first) << size;
    EXPECT_EQ(index.has(1), size + 1 >= content.size()) << size;
    EXPECT_TRUE(index.has(2)) << size;
  }
}

TEST(PartFilesTest, DamagedRecordsDoNotCount) {
  const base::TemporaryFolder folder;
  PartWriter(folder.path(), 0).append({numbered(0), numbered(1)});
  const base::Path file = part_files(folder.path())[0];
  std::string content = base::read_file(file);
  content[content.find("abc")] = 'X';
  base::write_file(file, content);
  RecordIndex index(2);
  index.add_part(file, number_in);
  EXPECT_FALSE(index.has(0));
  EXPECT_TRUE(index.has(1));
}

TEST(PartFilesTest, WhatWasDoneAgainCountsAndOtherModelsDoNot) {
  const base::TemporaryFolder folder;
  const base::Path results = folder.path() / "results.jsonl";
  base::write_file(results, numbered(0) + "\n" + numbered(1) + "\n" + numbered(2, "other") + "\nnothing\n");
  const std::string again = record_line({"1", "new", {4, "y"}, "m", "t"}, base::Json::object());
  PartWriter(folder.path(), 0).append({again});
  RecordIndex index(3);
  EXPECT_EQ(index.add_results(results, number_in), 1);
  for (const auto& file : part_files(folder.path())) index.add_part(file, number_in);
  EXPECT_EQ(all_of(index), (std::vector<std::string>{numbered(0), again}));
  EXPECT_EQ(index.done(), 2);
  EXPECT_EQ(index.in_parts(), 1);
}

}  // namespace
}  // namespace lockstep::results
