// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/spec/schema.h"

namespace lockstep::spec {
namespace {

using base::Json;
using testing::HasSubstr;

Job small_job() {
  return parse_job(base::parse_json(R"({"name": "a", "data": {"train": "synthetic", "samples": 64},
    "model": {"name": "smallcnn", "classes": 4}, "training": {"global_batch": 8, "epochs": 2}})",
                                    "job.json"));
}

// Two options: everything known, and next to nothing.
Plan small_plan() {
  Plan plan;
  plan.version = "1.0";
  plan.name = "a";
  plan.job = small_job();
  plan.best.fastest = 0;
  plan.assumptions = {{"start_up", "00:00:30"}, {"kwh", "0 USD"}};
  PlanOption all;
  all.machine = all.title = "2 x v100-32";
  all.gpu = "v100-32";
  all.gpus = 2;
  all.drivable = false;
  all.last_cuda = "12.9";
  all.memory.by_class = {{"weights", 100}, {"activations", 20}};
  all.memory.largest = {{100, "weights", "head"}};
  all.memory.curve = {{"event", {0, 1}}, {"weights", {100, 100}}};
  all.step_seconds = {.value = 0.1, .low = 0.08, .high = 0.13};
  all.time_by_class = {{"matmul", 0.1}};
  all.total_seconds = 30;
  all.jobs = 1;
  all.loader.emplace().bound = false;
  all.cost.emplace().core_hours = 4;
  all.cost->bills.emplace_back().session_limit_hours = 12;
  all.job = small_job();
  all.job->training.micro_batch = 4;
  all.why = {"fits"};
  PlanOption little;
  little.machine = little.title = "mi100";
  little.drivable = false;
  little.last_cuda.emplace();
  plan.options = {all, little};
  return plan;
}

std::string complaint(const Json& document) {
  try {
    parse_plan(base::parse_json(document.dump(), "plan.json"));
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    return base::text(error.what(), " | ", error.fix());
  }
  return "accepted";
}

TEST(PlanTest, ReadsWhatItWrote) {
  const Plan plan = small_plan();
  const Json written = to_json(plan);
  const Plan read = parse_plan(base::parse_json(written.dump(), "plan.json"));
  EXPECT_EQ(read, plan);
  EXPECT_EQ(to_json(read).dump(), written.dump());
}

TEST(PlanTest, WhatIsNotKnownIsNullOrLeftOut) {
  const Json written = to_json(small_plan());
  const Json& little = written.at("options").items()[1];
  for (const char* key : {"gpu", "step_seconds", "jobs", "loader", "energy", "time_by_class", "last_cuda"}) {
    EXPECT_TRUE(little.at(key).is_null()) << key;
  }
  for (const char* key : {"job", "evaluations"}) EXPECT_FALSE(little.contains(key)) << key;
  EXPECT_FALSE(little.at("memory").contains("curve"));
  EXPECT_EQ(little.at("cost").dump(-1), "{}");
  EXPECT_TRUE(written.at("options").items()[0].at("cost").at("kwh").is_null());
  EXPECT_EQ(written.members().front().key, "format");
}

TEST(PlanTest, AnotherDocumentIsNoPlan) {
  EXPECT_THAT(complaint(spec::to_json(small_job())),
              HasSubstr("plan.json:1:1: format: is missing: this is no plan document | make one: lockstep plan JOB"));
  EXPECT_THAT(complaint(Json::array()), HasSubstr("plan.json:1:1: format: is missing"));
  Json later = to_json(small_plan());
  later["format"] = "lockstep plan 2";
  EXPECT_THAT(complaint(later), HasSubstr("plan.json:2:13: format: \"lockstep plan 2\" is not \"lockstep plan 1\""));
}

TEST(PlanTest, ADamagedOneIsToldByPlaceAndKey) {
  const auto with = [](const std::string& key, const Json& value) {
    Json plan = to_json(small_plan());
    Json option = plan.at("options").items()[0];
    option[key] = value;
    plan["options"] = Json::array({option});
    return complaint(plan);
  };
  EXPECT_THAT(with("gpus", "two"), HasSubstr("options[0].gpus: an integer is expected, this is a string"));
  EXPECT_THAT(with("jobs", 1.5), HasSubstr("options[0].jobs: an integer is expected"));
  EXPECT_THAT(with("time_by_class", Json::array()), HasSubstr("options[0].time_by_class: an object of numbers"));
  EXPECT_THAT(with("gpuz", 1), HasSubstr("options[0].gpuz: unknown key | did you mean 'gpu"));
  EXPECT_THAT(with("fits", Json()), HasSubstr("options[0].fits: true or false is expected, this is null"));
  Json without = to_json(small_plan());
  without.erase("parameters");
  EXPECT_THAT(complaint(without), HasSubstr("plan.json:1:1: parameters: is missing"));
  Json job = to_json(small_plan());
  job["job"]["training"]["global_batch"] = -1;
  EXPECT_THAT(complaint(job), testing::MatchesRegex("plan.json:[0-9]+:[0-9]+: training.global_batch: must be .*"));
}

TEST(PlanTest, AnOptionIsAboutItsOwnJobOrThePlans) {
  const Plan plan = small_plan();
  EXPECT_EQ(plan.job_of(plan.options[0]).training.micro_batch, 4);
  EXPECT_EQ(plan.job_of(plan.options[1]), small_job());
}

TEST(PlanTest, TheSchemaKnowsWhatMayBeNull) {
  const Json option = json_schema(plan_section()).at("properties").at("options").at("items");
  EXPECT_EQ(option.at("properties").at("jobs").at("type").dump(-1), R"(["integer","null"])");
  EXPECT_EQ(option.at("properties").at("step_seconds").at("type").dump(-1), R"(["object","null"])");
  EXPECT_EQ(option.at("properties").at("cost").at("anyOf").size(), 2u);
  EXPECT_EQ(option.at("properties").at("memory").at("properties").at("by_class").at("additionalProperties").dump(-1),
            R"({"type":"integer"})");
  const std::string needed = option.at("required").dump(-1);
  EXPECT_THAT(needed, HasSubstr("\"jobs\""));
  EXPECT_THAT(needed, testing::Not(HasSubstr("\"evaluations\"")));
}

}  // namespace
}  // namespace lockstep::spec
