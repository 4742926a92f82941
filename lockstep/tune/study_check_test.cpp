// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/study_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::tune {
namespace {

using testing::HasSubstr;

class StudyCheckTest : public testing::Test {
 protected:
  StudyCheckTest() {
    begun_.apply(R"({"op_code":0,"worker_id":"w","study_name":"s","directions":[1]})", "1");
    begun_.apply(base::text(R"({"op_code":4,"worker_id":"w","study_id":0,"datetime_start":null,"state":0,)",
                            R"("params":{"o":1},"distributions":{"o":)",
                            base::quote_json(to_optuna(space_of(kBegun)[0].distribution)),
                            R"(},"user_attrs":{},"system_attrs":{},"intermediate_values":{}})"),
                 "2");
  }
  static spec::Study study_of(const std::string& words) {
    return spec::parse_study(base::parse_json(words, "study.json"));
  }
  static Space space_of(const std::string& words) { return make_space(study_of(words), nullptr); }
  std::string complaint(const std::string& words) const {
    try {
      check_study(begun_, study_of(words), space_of(words), "study.log");
    } catch (const base::Error& error) {
      return base::text(error.exit_code(), " ", error.what());
    }
    return "";
  }
  static constexpr const char* kBegun = R"({"space": {"o": {"choice": ["sgd", "adamw"]}}})";
  Trials begun_{"s"};
};

TEST_F(StudyCheckTest, TheSameStudyGoesOn) {
  EXPECT_EQ(complaint(kBegun), "");
  EXPECT_EQ(complaint(R"({"space": {"lr": {"range": [0, 1]}}})"), "");  // a new parameter
}

TEST_F(StudyCheckTest, RefusesAnotherStudyOfThatName) {
  EXPECT_THAT(complaint(R"({"space": {"o": {"choice": ["sgd"]}}})"), HasSubstr("2 space.o: trial 0 of the study had"));
  EXPECT_THAT(complaint(R"({"space": {"o": {"range": [0, 1]}}})"), HasSubstr("2 space.o: trial 0 of the study had"));
  EXPECT_THAT(complaint(R"({"space": {"lr": {"range": [0, 1]}}, "direction": "maximize"})"),
              HasSubstr("2 direction: the study in study.log was begun to minimize"));
}

}  // namespace
}  // namespace lockstep::tune
