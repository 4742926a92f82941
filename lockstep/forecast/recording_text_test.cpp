// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/recording_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::forecast {
namespace {

using testing::HasSubstr;

std::string complaint(const std::string& content) {
  try {
    with_fix([&] { return open_recording(content, "a.rec", "step"); });
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_FALSE(error.fix().empty());
    return error.what();
  }
  return "";
}

const std::string kWhole = seal_recording(print_header("step", base::Json::object()) + "one\ntwo\n");

TEST(RecordingTextTest, GivesHeaderAndBodyOfAWholeFile) {
  const OpenedRecording opened = open_recording(kWhole, "a.rec", "step");
  EXPECT_EQ(opened.header.at("kind").as_string(), "step");
  EXPECT_EQ(opened.body, "one\ntwo\n");
}

TEST(RecordingTextTest, NoticesEveryChangedByte) {
  for (size_t i = 0; i < kWhole.size(); ++i) {
    std::string changed = kWhole;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_THAT(complaint(changed), HasSubstr("a.rec:")) << i;
  }
}

TEST(RecordingTextTest, NoticesEveryCut) {
  for (size_t size = 0; size < kWhole.size(); ++size) {
    EXPECT_THAT(complaint(kWhole.substr(0, size)), HasSubstr("a.rec:")) << size;
  }
  EXPECT_THAT(complaint(kWhole.substr(0, kWhole.size() - 10)), HasSubstr("a.rec:4: the file ends without"));
}

TEST(RecordingTextTest, NamesAnotherVersionKindAndFormat) {
  EXPECT_THAT(complaint("{\"format\":\"lockstep recording\",\"version\":2}\n"), HasSubstr("version 2"));
  EXPECT_THAT(complaint("{\"format\":\"else\",\"version\":1}\n"), HasSubstr("not a recording"));
  EXPECT_THAT(complaint(seal_recording(print_header("allocator", base::Json::object()))), HasSubstr("\"allocator\""));
}

TEST(RecordingTextTest, NamesTheLineOfABadWord) {
  RecordingScanner scanner("7 x\n99 1e3 b\n", "a.rec");
  ASSERT_TRUE(scanner.next_line());
  EXPECT_EQ(scanner.integer("number", 0, 10), 7);
  try {
    scanner.integer("number", 0, 10);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_STREQ(error.what(), "a.rec:2: 'x' is no number");
  }
  ASSERT_TRUE(scanner.next_line());
  try {
    scanner.integer("size", 0, 10);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_STREQ(error.what(), "a.rec:3: size 99 is outside 0 .. 10");
  }
  EXPECT_EQ(scanner.number("number"), 1000);
  EXPECT_EQ(scanner.choice({"a", "b"}, "letter"), 1u);
  EXPECT_TRUE(scanner.at_line_end());
  EXPECT_FALSE(scanner.next_line());
}

}  // namespace
}  // namespace lockstep::forecast
