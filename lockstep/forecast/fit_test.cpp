// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/forecast/invented_device.h"

namespace lockstep::forecast {
namespace {

std::vector<Sample> rows(const std::string& words) {
  return parse_rows(base::parse_json(words, "rows.json"));
}

const char* const kAdd =
    R"({"name": "aten::add", "kind": "elementwise", "type": "bf16", "flops": 0, "bytes": 1000, "shape": [10, 50],)";

TEST(FitTest, ReadsARowAsItWasMeasured) {
  const auto one = rows(std::string("[") + kAdd + R"("seconds": 2e-6, "model": "resnet18", "gpu": "h200"}])");
  ASSERT_EQ(one.size(), 1U);
  const Sample expected{{.name = "aten::add",
                         .kind = OperatorClass::elementwise,
                         .type = NumberType::bf16,
                         .bytes = 1000,
                         .shape = {10, 50}},
                        2e-6,
                        Layout::channels_last,
                        {"resnet18"}};
  EXPECT_EQ(one[0], expected);
}

TEST(FitTest, NamesThePlaceOfARowWithoutTime) {
  try {
    rows(std::string("[") + kAdd + "\"seconds\": 0}]");
    FAIL() << "accepted a time of nothing";
  } catch (const base::Error& error) {
    EXPECT_NE(std::string(error.what()).find("rows.json:1:"), std::string::npos) << error.what();
  }
}

TEST(FitTest, TakesTheMedianOfTheSameOperatorAndKeepsItsModels) {
  const std::string add = kAdd;
  const auto merged = merge_samples(
      rows("[" + add + R"("seconds": 3e-6, "model": "b"},)" + add + R"("seconds": 2e-6, "model": "a"},)" + add +
           R"("seconds": 9e-6, "model": "a"},)" + add + R"("seconds": 5e-6, "layout": "contiguous"}])"));
  ASSERT_EQ(merged.size(), 2U);
  EXPECT_DOUBLE_EQ(merged[0].seconds, 3e-6);
  EXPECT_EQ(merged[0].models, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(merged[1].layout, Layout::contiguous);
}

TEST(FitTest, LeavesOutWhatDoesNothing) {
  EXPECT_TRUE(merge_samples(rows(R"([{"name": "aten::view", "kind": "view", "type": "fp32", "flops": 0, "bytes": 8,
      "shape": [], "seconds": 1e-6}])"))
                  .empty());
}

TEST(FitTest, ASpreadHoldsMostRatiosAndOne) {
  std::vector<double> ratios;
  for (int i = 0; i <= 100; ++i) ratios.push_back(0.5 + 0.01 * i);
  EXPECT_EQ(estimate_spread(ratios), (Spread{0.6, 1.4}));
  EXPECT_EQ(estimate_spread({1.1, 1.2}), (Spread{1, 1.2}));
  EXPECT_EQ(estimate_spread({}), (Spread{1, 1}));
}

Recording calling(OperatorClass kind, int64_t calls) {
  Recording recording;
  recording.operators = {{.name = "op", .kind = kind, .bytes = 1}, {.name = "view", .kind = OperatorClass::view}};
  recording.operators[1].launches = 0;
  for (int64_t i = 0; i < calls; ++i) recording.events.push_back({.kind = EventKind::run, .id = 0});
  recording.events.push_back({.kind = EventKind::run, .id = 1});
  return recording;
}

TEST(FitTest, WhatTheHostPaysIsItsCallsTimesWhatLiesBetweenThem) {
  const auto calls = host_by_class(base::parse_json(R"([
      {"kind": "convolution", "host_seconds": 20e-6, "count": 3}, {"kind": "convolution", "host_seconds": 40e-6},
      {"kind": "elementwise", "host_seconds": 5e-6}, {"kind": "view", "host_seconds": 1e-6}, {"kind": "matmul"}])",
                                                    "rows.json"));
  EXPECT_DOUBLE_EQ(calls.at(OperatorClass::convolution), 25e-6);
  EXPECT_EQ(calls.count(OperatorClass::matmul), 0U);
  const Recording ten = calling(OperatorClass::convolution, 10);
  const HostCosts costs = fit_host(calls, {{&ten, 2 * (10 * 25e-6 + 1e-6)}});
  EXPECT_NEAR(costs.by_class.at(OperatorClass::convolution), 50e-6, 1e-9);
  EXPECT_NEAR(costs.by_class.at(OperatorClass::elementwise), 10e-6, 1e-9);
  EXPECT_NEAR(costs.view, 2e-6, 1e-12);
}

TEST(FitTest, PowerSharesComeBackFromTheirOwnWatts) {
  std::vector<PowerCase> cases;
  for (const double share : {0.1, 0.5, 0.9}) {
    cases.push_back({.watts = 100 + 600 * 0.8 * (0.5 * (1 - share) + 0.9 * share), .idle = 100, .cap = 700});
    cases.back().busy = 0.8;
    cases.back().compute_bound = share;
  }
  const PowerShares shares = fit_power(cases, {});
  EXPECT_NEAR(shares.memory_bound, 0.5, 1e-3);
  EXPECT_NEAR(shares.compute_bound, 0.9, 1e-3);
  EXPECT_EQ(fit_power({}, {0.4, 0.6}), (PowerShares{0.4, 0.6}));
}

TEST(FitTest, ThinningKeepsWhatTheOthersDoNotTell) {
  std::vector<Sample> samples;
  for (int i = 0; i < 40; ++i) {
    const double bytes = 1e7 * std::pow(1.1, i);
    samples.push_back({{.name = "aten::add", .bytes = bytes}, bytes / 0.6e12, Layout::channels_last, {}});
  }
  samples.push_back({{.name = "aten::odd", .bytes = 2e8}, 1e-2, Layout::channels_last, {"resnet18"}});
  const auto kept = thin_samples(samples, invented_rates());
  EXPECT_LT(kept.size(), 10U);
  EXPECT_EQ(kept.back().op.name, "aten::odd");
}

TEST(FitTest, LeavingOneOutForetellsItFromTheOthers) {
  DeviceCalibration device = invented_device();
  device.samples.clear();
  for (double bytes = 1e7; bytes < 1e10; bytes *= 2) {
    device.samples.push_back({{.name = "aten::add", .bytes = bytes}, bytes / 0.6e12, Layout::channels_last, {}});
  }
  const auto ratios = leave_one_out(device);
  EXPECT_EQ(ratios.size(), device.samples.size());
  for (size_t i = 1; i < ratios.size(); ++i) EXPECT_NEAR(ratios[i], 1, 0.05) << i;  // beyond the shortest
}

}  // namespace
}  // namespace lockstep::forecast
