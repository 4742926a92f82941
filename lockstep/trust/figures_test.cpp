// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/trust/drawn_rows.h"

namespace lockstep::trust {
namespace {

using testing::HasSubstr;

TEST(FiguresTest, TellCalibrationSetsAndRisk) {
  const ClassRows rows = drawn_rows(2000, 5, 3, 21);
  const auto without = trust_figures(rows, std::nullopt);
  EXPECT_FALSE(without.contains("sets"));
  EXPECT_THAT(trust_text(without), HasSubstr("as the network says"));
  const Calibration calibration = calibrate(drawn_rows(2000, 5, 3, 22));
  const auto with = trust_figures(rows, calibration);
  EXPECT_LT(with.at("calibrated").at("ece").as_double(), with.at("raw").at("ece").as_double() / 3);
  ASSERT_EQ(with.at("sets").size(), 6U);
  for (const auto& row : with.at("sets").items()) {
    EXPECT_GE(row.at("found").as_double(), row.at("low").as_double());
    EXPECT_LE(row.at("low").as_double(), row.at("coverage").as_double());
    EXPECT_GE(row.at("size").as_double(), 1);
  }
  EXPECT_THAT(trust_text(with), HasSubstr("at temperature"));
}

TEST(FiguresTest, TellGroupsWeakestFirst) {
  ClassRows rows;
  for (int64_t i = 0; i < 60; ++i) rows.add(std::vector<float>{1, 0}, i % 3 == 0 && i < 30 ? 1 : 0, i);
  std::vector<std::string> values;
  for (int64_t i = 0; i < 60; ++i) values.push_back(i < 30 ? "night" : "day");
  const auto groups = group_figures(rows, values);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups.items()[0].at("value").as_string(), "night");
  EXPECT_NEAR(groups.items()[0].at("top1").as_double(), 2.0 / 3, 1e-12);
  EXPECT_EQ(groups.items()[1].at("high").as_double(), 1);
  EXPECT_LT(groups.items()[1].at("low").as_double(), 1);
  EXPECT_THAT(groups_text(groups, "light"), HasSubstr("night"));
}

TEST(FiguresTest, NameTheLabelsThatMayBeWrong) {
  ClassRows rows;
  for (int64_t i = 0; i < 40; ++i) {
    rows.add(i % 2 == 0 ? std::vector<float>{6, 0} : std::vector<float>{0, 6}, i == 10 ? 1 : i % 2, 100 + i);
  }
  const auto found = label_figures(rows, 1, {"cat", "dog"}, 5);
  EXPECT_EQ(found.at("found").as_int(), 1);
  EXPECT_EQ(found.at("shown").items()[0].at("sample").as_int(), 110);
  EXPECT_EQ(found.at("shown").items()[0].at("suggested").as_string(), "cat");
}

}  // namespace
}  // namespace lockstep::trust
