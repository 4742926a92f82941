// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/study.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::spec {
namespace {

Study study_from(const std::string& words) {
  return parse_study(base::parse_json(words, "study.json"));
}

std::string study_complaint(const std::string& words) {
  try {
    study_from(words);
  } catch (const base::Error& error) {
    return base::text(error.what(), " | ", error.fix());
  }
  return "";
}

TEST(StudyTest, ReadsASpaceAndGivesItBack) {
  const Study study = study_from(R"({"job": "job.json", "space": {
      "training.optimizer.lr": {"log": [1e-4, 0.1]},
      "training.optimizer.name": {"choice": ["sgd", "adamw"]},
      "training.optimizer.momentum": {"range": [0.8, 0.99], "when": {"training.optimizer.name": "sgd"}},
      "training.global_batch": {"choice": [32, 64]}}, "trials": 7})");
  ASSERT_EQ(study.space.size(), 4U);
  EXPECT_EQ(study.space[0].key, "training.optimizer.lr");
  EXPECT_EQ(study.space[2].when[0].second, "sgd");
  EXPECT_EQ(study.space[3].choice[1].as_int(), 64);
  EXPECT_EQ(study.trials, 7);
  EXPECT_EQ(parse_study(to_json(study)), study);
}

TEST(StudyTest, RefusesWhatCannotBeDrawnFrom) {
  EXPECT_NE(study_complaint(R"({"space": {"x": {"range": [2, 1]}}})").find("an empty range: 2 to 1"),
            std::string::npos);
  EXPECT_NE(study_complaint(R"({"space": {"x": {"log": [0, 1]}}})").find("0 has no logarithm"), std::string::npos);
  EXPECT_NE(study_complaint(R"({"space": {"x": {"range": [1]}}})").find("two numbers are expected"), std::string::npos);
  EXPECT_NE(study_complaint(R"({"space": {"x": {}}})").find("none of log, range, choice"), std::string::npos);
  EXPECT_NE(study_complaint(R"({"space": {}})").find("there is nothing to tune"), std::string::npos);
  EXPECT_NE(study_complaint(R"({"space": {"x": {"choice": [1, 1]}}})").find("twice"), std::string::npos);
  EXPECT_NE(study_complaint(R"({"space": {"x": {"rnage": [1, 2]}}})").find("did you mean 'range'"), std::string::npos);
  EXPECT_NE(study_complaint(R"({"space": {"x": {"range": [1, 2]}}, "budget": {"money": 5}})").find("budget.price"),
            std::string::npos);
}

TEST(StudyTest, RefusesAConditionOnWhatIsNotThere) {
  EXPECT_NE(study_complaint(R"({"space": {"a": {"choice": ["p", "q"]}, "x": {"range": [0, 1], "when": {"a": "z"}}}})")
                .find("'a' has no choice 'z'"),
            std::string::npos);
  EXPECT_NE(study_complaint(R"({"space": {"x": {"range": [0, 1], "when": {"a": "p"}}, "a": {"choice": ["p", "q"]}}})")
                .find("is no key of the space before it"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::spec
