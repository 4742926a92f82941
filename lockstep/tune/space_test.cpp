// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/space.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/spec/small_job.h"

namespace lockstep::tune {
namespace {

spec::Study study_of(const std::string& space) {
  return spec::parse_study(base::parse_json(base::text(R"({"space": )", space, "}"), "study.json"));
}

std::string space_complaint(const std::string& space) {
  const spec::Job job = spec::job_of(spec::kSmallJob);
  try {
    make_space(study_of(space), &job);
  } catch (const base::Error& error) {
    return base::text(error.what(), " | ", error.fix());
  }
  return "";
}

TEST(SpaceTest, MapsTheUnitIntervalToValuesAndBack) {
  const Space space = make_space(study_of(R"({"a": {"log": [1e-4, 0.1]}, "b": {"range": [1, 12], "integer": true},
      "c": {"choice": ["p", "q", "r"]}, "d": {"range": [0, 1], "step": 0.25}})"),
                                 nullptr);
  EXPECT_NEAR(space[0].distribution.at(0.5), std::sqrt(1e-5), 1e-12);
  EXPECT_EQ(space[1].distribution.at(0), 1);
  EXPECT_EQ(space[1].distribution.at(0.9999), 12);
  EXPECT_EQ(space[1].distribution.cells(), 12);
  EXPECT_EQ(space[2].distribution.at(0.5), 1);
  EXPECT_EQ(value_text(space[2], 1), "q");
  EXPECT_EQ(space[3].distribution.at(0.5), 0.5);
  for (const auto& parameter : space) {
    for (const double unit : {0.01, 0.3, 0.7, 0.99}) {
      const double value = parameter.distribution.at(unit);
      EXPECT_EQ(parameter.distribution.at(parameter.distribution.unit_of(value)), value) << parameter.name;
      EXPECT_TRUE(parameter.distribution.contains(value));
    }
  }
}

TEST(SpaceTest, SpeaksOptunasDistributions) {
  const Space space = make_space(
      study_of(R"({"a": {"log": [1e-4, 0.1]}, "b": {"log": [8, 512], "integer": true}, "c": {"choice": ["p", 2]}})"),
      nullptr);
  for (const auto& parameter : space) {
    EXPECT_EQ(from_optuna(to_optuna(parameter.distribution)), parameter.distribution) << parameter.name;
  }
  EXPECT_EQ(to_optuna(space[1].distribution),
            R"({"name":"IntDistribution","attributes":{"log":true,"step":1,"low":8,"high":512}})");
  EXPECT_FALSE(from_optuna(R"({"name": "NewDistribution", "attributes": {}})"));
}

TEST(SpaceTest, KnowsTheKeysOfTheJob) {
  EXPECT_EQ(space_complaint(R"({"training.optimizer.lr": {"log": [1e-4, 0.1]}})"), "");
  EXPECT_NE(space_complaint(R"({"training.optimiser.lr": {"log": [1e-4, 0.1]}})").find("training.optimizer.lr"),
            std::string::npos);
  EXPECT_NE(space_complaint(R"({"training.optimizer.momentum": {"range": [0.5, 1.5]}})").find("momentum"),
            std::string::npos);
  EXPECT_NE(space_complaint(R"({"training.optimizer.name": {"choice": ["sgd", "sdg"]}})").find("'sdg' is not one of"),
            std::string::npos);
}

TEST(SpaceTest, TheTaskSaysWhichWayItsHeadlineIsBetter) {
  const auto is_higher = [](spec::Task task) {
    spec::Job job;
    job.task = task;
    return is_maximized({}, job);
  };
  EXPECT_TRUE(is_higher(spec::Task::classify) && is_higher(spec::Task::segment) && is_higher(spec::Task::caption));
  EXPECT_FALSE(is_higher(spec::Task::regress) || is_higher(spec::Task::ordinal));
}

TEST(SpaceTest, LeavesOutWhatItsConditionExcludes) {
  const Space space = make_space(
      study_of(R"({"o": {"choice": ["sgd", "adam"]}, "m": {"range": [0, 1], "when": {"o": "sgd"}}})"), nullptr);
  EXPECT_TRUE(is_active(space[1], space, {{"o", 0}}));
  EXPECT_FALSE(is_active(space[1], space, {{"o", 1}}));
  EXPECT_EQ(to_sets(space, {{"o", 1}}), std::vector<std::string>{"o=adam"});
}

}  // namespace
}  // namespace lockstep::tune
