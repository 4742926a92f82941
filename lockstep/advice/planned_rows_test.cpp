// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/planned_rows.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/planning/invented_tracer.h"

namespace lockstep::advice {
namespace {

constexpr const char* kPlannedJob =
    R"({"name": "small", "data": {"train": "synthetic", "samples": 640, "image_size": 32},
    "model": {"name": "resnet18", "classes": 10}, "training": {"global_batch": 32, "epochs": 2}})";

class PlannedRowsTest : public testing::Test {
 protected:
  MeasuredTable planned(const std::string& members) {
    base::write_file(folder_.path() / "job.json", kPlannedJob);
    const auto document = base::parse_json(
        R"({"title": "t", "source": "s", "tables": [{"title": "rates", "job": "job.json", )" + members + "}]}",
        "table");
    MeasuredTable table = parse_measured(document).tables.front();
    const base::Arguments arguments;
    plan_rows(table, folder_.path(), {arguments, catalogue_, calibration_, &tracer_});
    return table;
  }

  base::TemporaryFolder folder_;
  catalogue::Catalogue catalogue_ = catalogue::load_embedded();
  forecast::Calibration calibration_ = forecast::load_calibration();
  planning::InventedTracer tracer_;
};

TEST_F(PlannedRowsTest, EveryRowGetsItsRateAndHours) {
  const MeasuredTable table = planned(R"("gpu": "v100-32", "network": {"inter_rate": "10 GB/s"}, "rows": [
      {"gpus": 1, "batch": 32, "steps": 7200, "rate": 100}, {"gpus": 4, "batch": 32, "rate": 390}])");
  ASSERT_TRUE(table.figures[0].planned_rate && table.figures[0].planned_hours && table.figures[1].planned_rate);
  EXPECT_DOUBLE_EQ(*table.figures[0].planned_hours, 7200 * 32 / *table.figures[0].planned_rate / 3600);
  EXPECT_FALSE(table.figures[1].planned_hours);
  EXPECT_GT(*table.figures[1].planned_rate, 2 * *table.figures[0].planned_rate);
  EXPECT_LT(*table.figures[1].planned_rate, 4 * *table.figures[0].planned_rate);
  EXPECT_GT(table.network.gradient_bytes, 0);  // that of the traced network
  EXPECT_FALSE(table.planned_network.empty());
}

TEST_F(PlannedRowsTest, AGradientThatIsStatedStays) {
  const MeasuredTable table = planned(R"("gpu": "v100-32", "network": {"gradient": "7 MB", "inter_rate": "10 GB/s"},
      "rows": [{"gpus": 1, "batch": 32, "rate": 100}])");
  EXPECT_EQ(table.network.gradient_bytes, 7e6);
}

// "batch" is to be read: each GPU has gpu_batch samples of a step, and the nodes are those of the row.
TEST_F(PlannedRowsTest, ATableOfEpochsIsPlannedByTheBatchOfAGpu) {
  const MeasuredTable table = planned(R"("gpu": "v100-32", "epochs": 50, "gpu_batch": 16, "rows": [
      {"gpus": 2, "nodes": 1, "batch": 1000, "hours": 13, "samples": 2000},
      {"gpus": 10, "nodes": 5, "batch": 2000, "hours": 12, "samples": 2000}])");
  ASSERT_TRUE(table.figures[0].planned_rate && table.figures[1].planned_rate);
  EXPECT_FALSE(table.figures[0].planned_hours) << "the reading says how many samples are shown";
  EXPECT_GT(*table.figures[1].planned_rate, *table.figures[0].planned_rate);
  EXPECT_LT(*table.figures[1].planned_rate, 5 * *table.figures[0].planned_rate) << "over the network";
}

TEST_F(PlannedRowsTest, NeedsAGpuAndBatches) {
  EXPECT_THROW(planned(R"("rows": [{"gpus": 1, "batch": 32, "rate": 100}])"), base::Error);
  EXPECT_THROW(planned(R"("gpu": "v100-32", "rows": [{"gpus": 1, "rate": 100}])"), base::Error);
}

}  // namespace
}  // namespace lockstep::advice
