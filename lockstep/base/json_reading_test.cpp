// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/json.h"

#include <gtest/gtest.h>

#include <string>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"

namespace lockstep::base {
namespace {

std::string complaint(std::string_view content, const JsonLimits& limits = {}) {
  try {
    parse_json(content, "job.json", limits);
  } catch (const Error& error) {
    EXPECT_EQ(error.blame(), Blame::user);
    return error.what();
  }
  return "";
}

TEST(JsonReadingTest, KeepsOrderKindsAndPlaces) {
  const Json job = parse_json("{ \"b\": 1,\n  \"a\": [true, null, 2.5, \"x\\u00e9\\n\"] }", "job.json");
  EXPECT_EQ(job.members()[0].key, "b");
  EXPECT_TRUE(job.at("b").is_integer());
  EXPECT_EQ(job.at("a").items()[3].as_string(), "x\xC3\xA9\n");
  EXPECT_EQ(job.at("a").where(), "job.json:2:8");
  EXPECT_EQ(job.members()[1].key_position.column, 3);
}

TEST(JsonReadingTest, PassesOverTheByteOrderMarkOfAnEditor) {
  EXPECT_EQ(parse_json("\xEF\xBB\xBF{\"a\": 1}", "job.json").at("a").where(), "job.json:1:7");
  EXPECT_NE(complaint("{\xEF\xBB\xBF}"), "");
}

TEST(JsonReadingTest, ReadsAnObjectOfManyKeysInLinearTime) {
  std::string source = "{\"k\": 1";
  for (int i = 0; i < 90000; ++i) source += ",\"k" + std::to_string(i) + "\":1";
  const double start = thread_processor_seconds();
  EXPECT_EQ(parse_json(source + "}", "x").size(), 90001u);
  // A look through all keys for each new one took 20 s.
  EXPECT_LT(thread_processor_seconds() - start, 5);
}

TEST(JsonReadingTest, AllowsComments) {
  EXPECT_EQ(parse_json("// head\n{ /* in */ \"a\": 1 } // tail", "x").at("a").as_int(), 1);
}

TEST(JsonReadingTest, NamesLineAndColumnOfBadSyntax) {
  EXPECT_EQ(complaint("{\n  \"a\" 1}"), "job.json:2:7: ':' is expected after key 'a'");
  EXPECT_EQ(complaint("{\"a\": 1,\n \"a\": 2}"), "job.json:2:2: duplicate key 'a'");
  EXPECT_EQ(complaint("[1 2]"), "job.json:1:4: ',' or ']' is expected");
  EXPECT_EQ(complaint("[1,]"), "job.json:1:4: unexpected ']'");
  EXPECT_EQ(complaint("[012]"), "job.json:1:2: '012' is not a number");
  EXPECT_EQ(complaint("{\"a\": tru}"), "job.json:1:7: unknown word 'tru'");
  EXPECT_EQ(complaint("\"abc"), "job.json:1:1: a string that never ends");
  EXPECT_EQ(complaint("1 2"), "job.json:1:3: text after the end of the document");
  EXPECT_EQ(complaint(""), "job.json:1:1: the document ends where a value is expected");
  EXPECT_EQ(complaint("\"\\ud800\""), "job.json:1:8: a lone surrogate escape");
}

TEST(JsonReadingTest, RefusesInvalidUtf8WithItsPlace) {
  EXPECT_EQ(complaint("{\n \"a\": \"\xE9t\"}"), "job.json:2:8: the document is not valid UTF-8");
}

TEST(JsonReadingTest, BoundsDepthAndSize) {
  EXPECT_EQ(complaint(std::string(100000, '[')), "job.json:1:66: nested deeper than 64 levels");
  EXPECT_NE(complaint(std::string(2000, ' '), {.max_bytes = 1000}).find("more than 1000"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::base
