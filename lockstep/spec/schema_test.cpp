// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/schema.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(training.at("properties").at("precision").at("enum").dump(-1), R"(["fp32","tf32","bf16","amp"])");
  EXPECT_EQ(schema.at("else").at("properties").at("training").at("oneOf").size(), 3u);  // without model.weights
  EXPECT_FALSE(schema.at("additionalProperties").as_bool());
  EXPECT_EQ(schema.at("required").dump(-1), R"(["name","data","model"])");
  EXPECT_EQ(schema.at("else").at("required").dump(-1), R"(["training"])");
}

// What the patterns accept is checked by tests/oracles/schema.py, beside the parser.
TEST(SchemaTest, QuantitiesHaveAPatternAndListsTheirLength) {
  const base::Json machine = json_schema(machine_section()).at("properties");
  EXPECT_EQ(machine.at("memory_per_node").at("type").as_string(), "string");
  EXPECT_TRUE(machine.at("memory_per_node").contains("pattern"));
  EXPECT_TRUE(machine.at("file_system").at("properties").at("read_rate").contains("pattern"));
  const base::Json job = json_schema(job_section()).at("properties");
  EXPECT_TRUE(job.at("limits").at("properties").at("walltime").contains("pattern"));
  EXPECT_EQ(job.at("data").at("properties").at("mean").at("maxItems").as_int(), 3);
  EXPECT_EQ(job.at("training").at("properties").at("recompute").at("type").dump(-1), R"(["string","array"])");
}

}  // namespace
}  // namespace lockstep::spec
