// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/explain_rates.h"

#include <gtest/gtest.h>

namespace lockstep::advice {
namespace {

MeasuredTable kitti() {
  MeasuredTable table;
  table.gpu = "p100-pcie";
  for (const auto& [gpus, rate] : {std::pair<int64_t, double>{1, 7.93}, {8, 60.8}, {16, 122.24}}) {
    forecast::ScalingRow row;
    row.gpus = gpus;
    row.batch = 5;
    row.rate = rate;
    table.rows.push_back(row);
  }
  table.network.gradient_bytes = 102e6;
  table.network.inter_rate = 10e9;
  return table;
}

TEST(ExplainRatesTest, NamesWeakScalingAndItsEfficiencies) {
  Paper paper;
  const auto document = explain_rates(kitti(), catalogue::load_embedded(), paper);
  EXPECT_NEAR(document.at("rows").items()[1].at("efficiency").as_double(), 0.958, 0.0005);
  EXPECT_NEAR(document.at("rows").items()[2].at("efficiency").as_double(), 0.963, 0.0005);
  EXPECT_NE(to_text(paper).find("Weak scaling: each GPU takes 5 samples"), std::string::npos);
}

TEST(ExplainRatesTest, ForecastsALossThatGrowsWithTheGpus) {
  Paper paper;
  const auto document = explain_rates(kitti(), catalogue::load_embedded(), paper);
  const auto forecast = [&](size_t i) { return document.at("rows").items()[i].at("forecast_efficiency").as_double(); };
  EXPECT_DOUBLE_EQ(forecast(0), 1);
  EXPECT_LT(forecast(1), 1);
  EXPECT_LE(forecast(2), forecast(1));
  EXPECT_GT(forecast(2), 0.9);
}

}  // namespace
}  // namespace lockstep::advice
