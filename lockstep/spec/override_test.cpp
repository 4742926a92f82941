// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/override.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/spec/job.h"

namespace lockstep::spec {
namespace {

base::Json overridden(const std::string& content, const std::vector<std::string>& sets) {
  base::Json document = base::parse_json(content, "job.json");
  apply_sets(job_section(), document, sets);
  return document;
}

std::string set_complaint(const std::string& words) {
  try {
    overridden("{\"training\": {\"phases\": [{}]}}", {words});
  } catch (const base::Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    return error.message();
  }
  return "";
}

TEST(OverrideTest, SetsNumbersTextAndWholeSections) {
  const base::Json job = overridden("{}", {"training.global_batch=512", "name=123", "limits.walltime=48:00:00",
                                           "data.train=a=b", "data.mean=[0, 0, 1]", "model={\"name\": \"mlp\"}"});
  EXPECT_EQ(job.dump(-1), R"({"training":{"global_batch":512},"name":"123","limits":{"walltime":"48:00:00"},)"
                          R"("data":{"train":"a=b","mean":[0,0,1]},"model":{"name":"mlp"}})");
}

TEST(OverrideTest, ReachesIntoLists) {
  const std::string source = R"({"training": {"phases": [{"epochs": 1}, {"epochs": 2}]}})";
  EXPECT_EQ(overridden(source, {"training.phases[1].epochs=3", "training.phases[2].lr_scale=0.1"}).dump(-1),
            R"({"training":{"phases":[{"epochs":1},{"epochs":3},{"lr_scale":0.1}]}})");
}

TEST(OverrideTest, ALengthReplacesTheFilesOtherLength) {
  EXPECT_EQ(overridden(R"({"training": {"epochs": 4, "seed": 2}})", {"training.steps=10"}).dump(-1),
            R"({"training":{"seed":2,"steps":10}})");
  EXPECT_EQ(overridden("{}", {"training.steps=10", "training.epochs=1"}).at("training").size(), 2u);
}

TEST(OverrideTest, RefusesKeysThatDoNotExist) {
  EXPECT_EQ(set_complaint("training.global_bach=1"),
            "lockstep: user error: --set training.global_bach=1: training.global_bach: there is no such key\n"
            "  fix: did you mean 'global_batch'?");
  EXPECT_THAT(set_complaint("training.seed.x=1"), testing::HasSubstr("'seed' is a value"));
  EXPECT_THAT(set_complaint("training.seed[0]=1"), testing::HasSubstr("'seed' is not a list"));
  EXPECT_THAT(set_complaint("training.phases.epochs=1"), testing::HasSubstr("name one: phases[0]"));
  EXPECT_THAT(set_complaint("training.phases[5].epochs=1"), testing::HasSubstr("the list has 1 elements"));
  EXPECT_THAT(set_complaint("training.phases[x].epochs=1"), testing::HasSubstr("is not a key"));
  EXPECT_THAT(set_complaint("training.seed"), testing::HasSubstr("'=' is missing"));
  EXPECT_THAT(set_complaint("=3"), testing::HasSubstr("'=' is missing"));
}

TEST(OverrideTest, RefusesBytesThatNoDocumentHolds) {
  EXPECT_THAT(set_complaint("data.train=caf\xE9"), testing::HasSubstr("is not valid UTF-8"));
}

TEST(OverrideTest, AWrongValueIsBlamedOnTheSet) {
  try {
    parse_job(base::parse_json(R"({"name": "a", "data": {"train": "a"}, "model": {"name": "m"}})", "job.json"),
              {"training.epochs=four"});
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.message(),
                testing::HasSubstr("--set training.epochs=four: training.epochs: a number is expected"));
  }
}

}  // namespace
}  // namespace lockstep::spec
