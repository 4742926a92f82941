// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/cell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lockstep/base/error.h"
#include "lockstep/model/network.h"

namespace lockstep::measure {
namespace {

base::Json cell_of(const std::string& json) {
  return base::parse_json(json, "cells.json");
}

TEST(CellTest, BecomesAJob) {
  const auto cell = parse_cell(
      cell_of(R"({"model": "resnet50", "batch": 64, "precision": "bf16", "optimizer": "adamw", "micro_batch": 16})"));
  EXPECT_EQ(cell.job.model.name, "resnet50");
  EXPECT_EQ(cell.job.training.global_batch, 64);
  EXPECT_EQ(cell.job.training.micro_batch, 16);
  EXPECT_EQ(cell.name(), "resnet50-b64-m16-bf16-adamw");
}

TEST(CellTest, RefusesAKeyThatNobodyReads) {
  EXPECT_THROW(parse_cell(cell_of(R"({"model": "resnet50", "batch": 64, "percision": "bf16"})")), base::Error);
  EXPECT_THROW(parse_cell(cell_of(R"({"model": "resnet50", "batch": 64, "precision": "fp3"})")), base::Error);
}

TEST(CellTest, TheBuiltInCellsAreManyAndGood) {
  const auto cells = read_cells("");
  EXPECT_GE(cells.size(), 30U);
  std::set<std::string> names;
  const auto known = model::network_names();
  for (const auto& row : cells) {
    const auto cell = parse_cell(row);
    EXPECT_TRUE(names.insert(cell.name()).second) << cell.name() << " is there twice";
    EXPECT_THAT(known, testing::Contains(cell.job.model.name));
  }
}

TEST(CellTest, RunsTheStepAndTimesItsOperators) {
  auto cell = parse_cell(cell_of(R"({"model": "smallcnn", "batch": 4, "image_size": 16})"));
  cell.job.model.width = 4;
  const auto result = run_cell(cell, {.steps = 3, .seconds = 0.01, .operators = true});
  EXPECT_GT(result.row.at("seconds").as_double(), 0);
  EXPECT_GE(result.row.at("seconds_high").as_double(), result.row.at("seconds_low").as_double());
  EXPECT_GT(result.row.at("peak_resident_bytes").as_int(), 1 << 20);
  bool convolution = false;
  bool optimizer = false;
  for (const auto& row : result.operators.items()) {
    EXPECT_EQ(row.at("model").as_string(), "smallcnn");
    convolution |= row.at("kind").as_string() == "convolution";
    optimizer |= row.at("kind").as_string() == "optimizer" && row.at("phase").as_string() == "update";
  }
  EXPECT_TRUE(convolution);
  EXPECT_TRUE(optimizer);
}

}  // namespace
}  // namespace lockstep::measure
