// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/measured_table.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::advice {
namespace {

Measured parse_table(const std::string& table) {
  return parse_measured(base::parse_json(R"({"title": "t", "source": "s", "tables": [)" + table + "]}", "table.json"));
}

TEST(MeasuredTableTest, TakesANumberOrARangeOfHours) {
  const auto rows = parse_table(R"({"title": "x", "epochs": 5, "rows": [
      {"gpus": 2, "batch": 10, "hours": [13, 16], "samples": 100}, {"gpus": 4, "batch": 10, "hours": 7, "samples": 100}]})")
                        .tables.front()
                        .rows;
  EXPECT_DOUBLE_EQ(rows[0].hours(), 14.5);
  EXPECT_DOUBLE_EQ(rows[1].low_hours, 7);
  EXPECT_DOUBLE_EQ(rows[1].high_hours, 7);
}

TEST(MeasuredTableTest, NamesThePlaceOfWhatIsWrong) {
  for (const char* wrong : {R"({"title": "x", "rows": [{"gpus": 0, "rate": 1}]})", R"({"title": "x", "rows": []})",
                            R"({"title": "x", "rows": [{"gpus": 1}]})", R"({"title": "x", "rows": [{"gpu": 1}]})",
                            R"({"title": "x", "epochs": 5, "rows": [{"gpus": 1, "rate": 3}]})",
                            R"({"title": "x", "rows": [{"gpus": 1, "rate": 1, "hours": [3, 2]}]})"}) {
    try {
      parse_table(wrong);
      ADD_FAILURE() << wrong;
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), base::Blame::user);
      EXPECT_TRUE(std::string(error.what()).starts_with("table.json:1:")) << error.what();
    }
  }
}

TEST(MeasuredTableTest, AnOldKeyIsAnErrorThatSaysTheNewOne) {
  try {
    parse_table(R"({"title": "x", "rows": [{"gpus": 1, "rate": 1, "top1": 0.75}]})");
    ADD_FAILURE() << "accepted";
  } catch (const base::Error& error) {
    EXPECT_TRUE(error.fix().starts_with("it is called 'score' now")) << error.fix();
  }
}

}  // namespace
}  // namespace lockstep::advice
