// SPDX-License-Identifier: Apache-2.0
#include "lockstep/results/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::results {
namespace {

RecordHead head_of(const std::string& path) {
  return {path, "abc", {3, "2026-11-17T19:20:31.000000001Z"}, "pets@1", "2026-11-17T19:20:32Z"};
}

TEST(RecordTest, ALineBeginsWithItsHead) {
  const std::string line =
      record_line(head_of("a \"b\",\"time\":\".jpg"), base::parse_json(R"({"classes": [{"name": "x"}]})", "record"));
  EXPECT_THAT(line, testing::EndsWith(R"("time":"2026-11-17T19:20:32Z","classes":[{"name":"x"}]})"));
  EXPECT_EQ(read_head(line), head_of("a \"b\",\"time\":\".jpg"));
}

TEST(RecordTest, AnImageThatCouldNotBeReadHasItsReason) {
  RecordHead head{"gone.jpg", "", {}, "pets@1", "2026-11-17T19:20:32Z", true};
  const std::string line = failed_line(head, "no such \"file\"\nat all");
  EXPECT_THAT(line, testing::HasSubstr(R"("sha256":null,"bytes":null,"modified":null)"));
  EXPECT_THAT(line, testing::Not(testing::HasSubstr("\n")));
  EXPECT_EQ(read_head(line), head);
}

TEST(RecordTest, ANameOfOtherBytesIsReadable) {
  EXPECT_EQ(readable_name("caf\xc3\xa9 \xe9.jpg"), "caf\xc3\xa9 \\xe9.jpg");
  EXPECT_EQ(readable_name("\xc3"), "\\xc3");
}

TEST(RecordTest, AnythingElseIsNoRecord) {
  const std::string line = record_line(head_of("a.jpg"), base::Json::object());
  for (size_t size = 0; size + 1 < line.size(); ++size) EXPECT_FALSE(read_head(line.substr(0, size))) << size;
  EXPECT_FALSE(read_head(R"({"name":"a","time":"b"})"));
  EXPECT_FALSE(read_head(R"({"path":7,"model":"m","time":"b"})"));
}

TEST(RecordTest, ReadsWholeLinesWithTheirPositions) {
  const base::TemporaryFolder folder;
  const base::Path file = folder.path() / "lines";
  const std::string longer(3'000'000, 'x');  // more than one piece
  base::write_file(file, "one\n\n" + longer + "\ntorn");
  std::vector<std::pair<int64_t, size_t>> lines;
  for_each_line(file, [&](int64_t offset, std::string_view line) { lines.emplace_back(offset, line.size()); });
  EXPECT_EQ(lines, (std::vector<std::pair<int64_t, size_t>>{{0, 3}, {4, 0}, {5, longer.size()}}));
}

TEST(RecordTest, AFileOfOtherThingsIsNamedByItsLine) {
  const base::TemporaryFolder folder;
  const base::Path file = folder.path() / "results.jsonl";
  base::write_file(file, record_line(head_of("a.jpg"), base::Json::object()) + "\n{\"x\": 1}\n");
  int64_t count = 0;
  try {
    for_each_record(file, [&](const base::Json&) { ++count; });
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("line 2"));
  }
  EXPECT_EQ(count, 1);
}

TEST(RecordTest, LooksAtFiles) {
  const base::TemporaryFolder folder;
  base::write_file(folder.path() / "a", "12345");
  const FileState state = look_at_file(folder.path() / "a");
  EXPECT_EQ(state.bytes, 5);
  EXPECT_THAT(state.modified, testing::MatchesRegex("20..-..-..T..:..:......*Z"));
  EXPECT_EQ(look_at_file(folder.path() / "b"), FileState{});
  EXPECT_EQ(time_now().size(), 20U);
}

TEST(RecordTest, ADraftIsThereWithAllOrNotAtAll) {
  const base::TemporaryFolder folder;
  const base::Path file = folder.path() / "a.json";
  {
    DraftedFile draft(file);
    draft.write("half");
  }
  EXPECT_TRUE(base::list_folder(folder.path()).empty());
  DraftedFile draft(file);
  draft.write("all");
  draft.commit();
  EXPECT_EQ(base::read_file(file), "all");
  EXPECT_EQ(base::list_folder(folder.path()).size(), 1U);
}

}  // namespace
}  // namespace lockstep::results
