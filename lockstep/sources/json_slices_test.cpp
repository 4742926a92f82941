// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/json_slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::sources {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> slices(const std::string& text) {
  std::vector<std::string> all;
  for_each_element(text, "x.json", [&](std::string_view key, JsonSlice slice) {
    all.push_back(std::string(key) + "=" + text.substr(slice.offset, slice.size));
  });
  return all;
}

std::string slices_complaint(const std::string& text) {
  try {
    slices(text);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    return error.what();
  }
  return "no complaint";
}

TEST(JsonSlicesTest, GivesTheElementsOfTopArrays) {
  EXPECT_THAT(
      slices(R"( {"info": {"a": [1]}, "n": 3, "images": [ {"id": 1, "s": "a]\"}"} , [2, 3] , true ], "none": []} )"),
      ElementsAre(R"(images={"id": 1, "s": "a]\"}"})", "images=[2, 3]", "images=true"));
  EXPECT_THAT(slices("[1,\n{}]"), ElementsAre("=1", "={}"));
  EXPECT_THAT(slices("{}"), ElementsAre());
}

TEST(JsonSlicesTest, NamesTheLineOfWhatIsNoJson) {
  EXPECT_THAT(slices_complaint(""), HasSubstr("x.json:1: an object or an array"));
  EXPECT_THAT(slices_complaint("{\"a\":\n[1 2]}"), HasSubstr("x.json:2: ',' or ']'"));
  EXPECT_THAT(slices_complaint("{\"a\": [1,]}"), HasSubstr("a value is expected"));
  EXPECT_THAT(slices_complaint("{\"a\": [\"open]}"), HasSubstr("a string is never closed"));
  EXPECT_THAT(slices_complaint("{\"a\": [1]"), HasSubstr("',' or '}'"));
  EXPECT_THAT(slices_complaint("{} {}"), HasSubstr("behind the end"));
  EXPECT_THAT(slices_complaint("[" + std::string(100, '[')), HasSubstr("nested too deeply"));
  EXPECT_THAT(slices_complaint("[[["), HasSubstr("a value is expected"));
}

TEST(JsonSlicesTest, ParsesASliceAndNamesItsLine) {
  const std::string text = "[1,\n{\"a\": 5},\n{\"a\": }]";
  std::vector<JsonSlice> all;
  for_each_element(text, "x", [&](std::string_view, JsonSlice slice) { all.push_back(slice); });
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(parse_slice(text, "x.json", all[1]).at("a").as_int(), 5);
  try {
    parse_slice(text, "x.json", all[2]);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("x.json:3:7: "));
  }
  const auto read = [](const base::Json& value) { return value.at("a").as_string(); };
  try {
    read_slice(text, "x.json", all[1], read);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_STREQ(error.what(), "x.json:2:7: a string is expected, this is an integer");
  }
}

}  // namespace
}  // namespace lockstep::sources
