// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/schema.h"

#include <gtest/gtest.h>

#include <regex>

#include "lockstep/base/error.h"
#include "lockstep/base/units.h"
#include "lockstep/spec/job.h"
#include "lockstep/spec/machine.h"

namespace lockstep::spec {
namespace {

TEST(SchemaTest, SaysOfEachFieldWhatTheTableSays) {
  const base::Json schema = json_schema(job_section());
  const base::Json& training = schema.at("properties").at("training");
  const base::Json& batch = training.at("properties").at("global_batch");
  EXPECT_EQ(batch.at("type").as_string(), "integer");
  EXPECT_EQ(batch.at("minimum").as_double(), 1);
  EXPECT_EQ(batch.at("default").as_int(), 32);
  EXPECT_EQ(training.at("properties").at("precision").at("enum").dump(-1), R"(["fp32","bf16"])");
  EXPECT_EQ(training.at("oneOf").size(), 3u);
  EXPECT_FALSE(schema.at("additionalProperties").as_bool());
  EXPECT_EQ(schema.at("required").dump(-1), R"(["name","data","model","training"])");
}

TEST(SchemaTest, PatternsAcceptWhatTheParserAccepts) {
  const base::Json job = json_schema(job_section());
  const base::Json machine = json_schema(machine_section());
  const std::regex duration(
      job.at("properties").at("limits").at("properties").at("walltime").at("pattern").as_string());
  const std::regex bytes(machine.at("properties").at("memory_per_node").at("pattern").as_string());
  const auto parses = [](auto parse, const std::string& words) {
    try {
      parse(words);
      return true;
    } catch (const base::Error&) {
      return false;
    }
  };
  for (const std::string words : {"48:00:00", "1-12:00:00", "90 min", "2h30min", "1.5 d", "none", "48", "", "90:00",
                                  "3 weeks", "-2 h", "12 hours"}) {
    EXPECT_EQ(std::regex_match(words, duration), parses(base::parse_duration, words)) << words;
  }
  for (const std::string words : {"12 GB", "16GiB", "1.5 kB", "3 B", "12", "12 gb", "GB", ""}) {
    EXPECT_EQ(std::regex_match(words, bytes), parses(base::parse_bytes, words)) << words;
  }
}

}  // namespace
}  // namespace lockstep::spec
