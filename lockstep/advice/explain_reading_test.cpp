// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/explain_reading.h"

#include <gtest/gtest.h>

namespace lockstep::advice {
namespace {

forecast::ScalingRow row_at(double batch, int64_t gpus, double hours) {
  forecast::ScalingRow row;
  row.batch = batch;
  row.gpus = gpus;
  row.low_hours = row.high_hours = hours;
  row.low_samples = row.high_samples = 2500;
  return row;
}

TEST(ExplainReadingTest, CountsJobsAndSaysWhyAGlobalBatchCannotBe) {
  MeasuredTable table;
  table.gpu = "k80";
  table.epochs = 50;
  table.walltime_h = 48;
  table.rows = {row_at(1000, 2, 25), row_at(2000, 2, 50), row_at(4000, 2, 100)};
  table.reference = {"v100-32", 12, "somebody"};
  table.elsewhere = {{"8 x A100", 200, "tf32", "somebody"}};
  Paper paper;
  const auto document = explain_reading(table, catalogue::load_embedded(), paper);
  EXPECT_EQ(document.at("reading").as_string(), "images_per_epoch");
  EXPECT_NEAR(document.at("spread").as_double(), 1, 1e-9);
  EXPECT_EQ(document.at("rows").items()[1].at("jobs").as_int(), 2);
  EXPECT_EQ(document.at("rows").items()[2].at("jobs").as_int(), 3);
  // 50,000 samples in 25 h on two dies, of 12 x 4.063 / 15.67 samples/s.
  EXPECT_NEAR(document.at("efficiency").as_double(), 50000 / 25.0 / 3600 / 2 / (12 * 4.063 / 15.67), 1e-6);
  EXPECT_NEAR(document.at("elsewhere_hours").items()[0].items()[0].as_double(), 50000 / 200.0 / 3600, 1e-9);
  EXPECT_FALSE(document.at("rows").items()[0].contains("planned_hours"));
  table.planned_network = "a network";
  table.figures.resize(3);
  table.figures[0].planned_rate = 2;
  Paper with_plan;
  const auto planned = explain_reading(table, catalogue::load_embedded(), with_plan);
  EXPECT_NEAR(planned.at("rows").items()[0].at("planned_hours").as_double(), 50000 / 2.0 / 3600, 1e-9);
  EXPECT_NE(to_text(with_plan).find("Planned: the step of a network"), std::string::npos);
  EXPECT_NE(to_text(paper).find("rows 1 and 2 contradict each other"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::advice
