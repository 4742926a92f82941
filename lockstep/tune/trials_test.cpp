// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/trials.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::tune {
namespace {

void apply_all(Trials& trials, const std::vector<std::string>& fields) {
  for (const auto& one : fields) trials.apply(base::text(R"({"worker_id":"w",)", one, "}"), "test");
}

TEST(TrialsTest, NumbersTrialsAsOptunaDoes) {
  Trials trials("b");
  apply_all(trials,
            {R"("op_code":0,"study_name":"a","directions":[1])", R"("op_code":0,"study_name":"b","directions":[2])",
             R"("op_code":4,"study_id":0,"datetime_start":null)", R"("op_code":4,"study_id":1,"datetime_start":null)",
             R"("op_code":4,"study_id":7,"datetime_start":null)",  // no such study: no id
             R"("op_code":4,"study_id":1,"datetime_start":null,"state":1,"value":2.5)"});
  EXPECT_TRUE(trials.maximize());
  ASSERT_EQ(trials.all().size(), 2U);
  EXPECT_EQ(trials.all()[0].id, 1);
  EXPECT_EQ(trials.all()[1].id, 2);
  EXPECT_EQ(trials.all()[1].number, 1);
  EXPECT_EQ(trials.next_trial_id(), 3);
  EXPECT_EQ(best_of(trials.all(), true)->id, 2);
}

TEST(TrialsTest, LeavesFinishedTrialsAsTheyAre) {
  Trials trials("s");
  apply_all(trials,
            {R"("op_code":0,"study_name":"s","directions":[1])", R"("op_code":4,"study_id":0,"datetime_start":null)",
             R"("op_code":6,"trial_id":0,"state":1,"values":[1.0],"datetime_complete":"2026-01-01T00:00:00+00:00")",
             R"("op_code":6,"trial_id":0,"state":3,"values":null,"datetime_complete":"2026-01-01T00:00:00+00:00")",
             R"("op_code":7,"trial_id":0,"step":1,"intermediate_value":4.0)", R"("op_code":10,"study_id":0)"});
  EXPECT_EQ(trials.all()[0].state, TrialState::complete);
  EXPECT_TRUE(trials.all()[0].intermediate.empty());
}

// Whoever can write to the study's folder can write such lines.
TEST(TrialsTest, ARecordThatCannotBeIsAnErrorWithItsPlace) {
  const std::string choices =
      R"("distribution":"{\"name\":\"CategoricalDistribution\",\"attributes\":{\"choices\":[1,2]}}")";
  for (const std::string& line :
       {R"("op_code":5,"trial_id":0,"param_name":"c","param_value_internal":99,)" + choices,
        R"("op_code":5,"trial_id":0,"param_name":"c","param_value_internal":-1,)" + choices,
        R"("op_code":5,"trial_id":0,"param_name":"c","param_value_internal":NaN,)" + choices,
        std::string(R"("op_code":4,"study_id":0,"datetime_start":null,"intermediate_values":{"x":1.0})"),
        std::string(
            R"("op_code":4,"study_id":0,"datetime_start":null,"intermediate_values":{"99999999999999999999":1})")}) {
    Trials trials("s");
    apply_all(trials, {R"("op_code":0,"study_name":"s","directions":[1])",
                       R"("op_code":4,"study_id":0,"datetime_start":null)"});
    try {
      apply_all(trials, {line});
      ADD_FAILURE() << line;
    } catch (const base::Error& error) {
      EXPECT_EQ(std::string(error.what()).substr(0, 6), "test: ") << error.what();
    }
  }
}

TEST(TrialsTest, WritesNumbersAsPythonReadsThem) {
  EXPECT_EQ(number_text(1), "1.0");
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(1e-7), "1e-07");
  EXPECT_EQ(number_text(std::nan("")), "NaN");
  EXPECT_EQ(number_text(-std::numeric_limits<double>::infinity()), "-Infinity");
  EXPECT_EQ(parse_record(R"({"a":-Infinity,"b":"NaN Infinity \" NaN","c":NaN})", "x").at("b").as_string(),
            "NaN Infinity \" NaN");
}

}  // namespace
}  // namespace lockstep::tune
