// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/json.h"

#include <gtest/gtest.h>

#include <string>

#include "lockstep/base/error.h"

namespace lockstep::base {
namespace {

TEST(JsonTest, PrintsWhatItReads) {
  const std::string source = R"({
  "name": "pets",
  "lr": 0.1,
  "list": [1, 2, 3],
  "nested": {
    "empty": {},
    "none": []
  }
})";
  EXPECT_EQ(parse_json(source, "x").dump(), source);
  EXPECT_EQ(parse_json(source, "x").dump(-1),
            R"({"name":"pets","lr":0.1,"list":[1,2,3],"nested":{"empty":{},"none":[]}})");
}

TEST(JsonTest, WritesAFileNameOfAnyBytesSoThatItCanBeRead) {
  EXPECT_EQ(Json("caf\xe9").dump(-1), "\"caf\\u00e9\"");
  EXPECT_EQ(Json("caf\xc3\xa9").dump(-1), "\"caf\xc3\xa9\"");
  EXPECT_EQ(parse_json(Json("caf\xe9").dump(-1), "test").as_string(), "caf\xc3\xa9");
}

TEST(JsonTest, ConvertsOrComplains) {
  const Json value = parse_json("{\"a\": \"x\", \"b\": 1.5}", "job.json");
  EXPECT_THROW((void)value.at("a").as_int(), Error);
  EXPECT_THROW((void)value.at("b").as_int(), Error);
  EXPECT_THROW((void)value.at("c"), Error);
  EXPECT_EQ(value.int_or("c", 7), 7);
  EXPECT_EQ(Json(0.1).dump(), "0.1");
  EXPECT_EQ(Json(0.0 / 0.0).dump(), "null");
}

}  // namespace
}  // namespace lockstep::base
