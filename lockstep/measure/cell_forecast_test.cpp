// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/cell_forecast.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/forecast/invented_device.h"

namespace lockstep::measure {
namespace {

forecast::Recording ten_adds(const Cell&, const catalogue::Gpu&) {
  using forecast::EventKind;
  forecast::Recording recording;
  recording.parameters = 250'000;
  recording.parameter_bytes = 1'000'000;
  recording.micro_batch = 1;
  recording.operators = {{.name = "aten::add", .bytes = 1e9}};
  recording.events.push_back({.kind = EventKind::birth, .id = 1, .bytes = 1'000'000});
  for (int step = 0; step < 3; ++step) {
    recording.events.push_back({.kind = EventKind::step_begin});
    for (int i = 0; i < 10; ++i) recording.events.push_back({.kind = EventKind::run, .id = 0});
    recording.events.push_back({.kind = EventKind::step_end});
  }
  recording.steps = 3;
  return recording;
}

const char* const kRows = R"([
  {"what": "cell", "model": "resnet18", "batch": 8, "precision": "fp32", "optimizer": "sgd", "device": "cuda",
   "seconds": 0.0125, "peak_reserved_bytes": 2097152, "machine": "Invented"},
  {"what": "cell", "model": "resnet18", "batch": 9, "error": "out of memory"},
  {"what": "cell", "model": "resnet18", "batch": 8, "device": "cpu", "seconds": 1.5}])";

std::vector<CellForecast> foretell_cells(const CellTracer& tracer, std::string* said = nullptr) {
  return forecast_cells(base::parse_json(kRows, "cells.json"), forecast::invented_gpu(),
                        forecast::Calibration({forecast::invented_device()}), tracer,
                        [&](const std::string& words) { *said = words; });
}

TEST(CellForecastTest, PutsTheForecastBesideWhatWasMeasured) {
  const auto cells = foretell_cells(ten_adds);
  ASSERT_EQ(cells.size(), 1U);
  EXPECT_NEAR(cells[0].time_error(), 0, 0.01);
  EXPECT_NEAR(cells[0].roofline_error(), -0.2, 0.01);  // 10 of 12.5 ms
  EXPECT_EQ(cells[0].weights_only, 1'000'000);
  const base::Json row = cell_forecast_row(cells[0], "here");
  EXPECT_EQ(row.at("model").as_string(), "resnet18");
  EXPECT_NEAR(row.at("ratio").as_double(), 1, 0.01);
  EXPECT_EQ(row.at("peak_reserved_bytes").as_double(), 2097152);
}

TEST(CellForecastTest, NamesACellThatCannotBeTraced) {
  std::string said;
  const auto cells = foretell_cells(
      [](const Cell&, const catalogue::Gpu&) -> forecast::Recording {
        throw base::Error(base::Blame::user, "no kernel for aten::odd");
      },
      &said);
  EXPECT_TRUE(cells.empty());
  EXPECT_NE(said.find("resnet18-b8"), std::string::npos) << said;
  EXPECT_NE(said.find("aten::odd"), std::string::npos) << said;
}

}  // namespace
}  // namespace lockstep::measure
