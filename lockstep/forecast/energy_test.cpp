// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/energy.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/forecast/invented_device.h"

namespace lockstep::forecast {
namespace {

TimeForecast step(double device, double total, double compute_bound) {
  TimeForecast forecast;
  forecast.device = device;
  forecast.step.value = total;
  forecast.compute_bound_share = compute_bound;
  return forecast;
}

const PowerRules kPlain{.idle_share = 0.1, .node_watts = 100, .overhead = 1.5};

TEST(EnergyTest, IsTimeByPowerOfGpusNodesAndBuilding) {
  // 400 W: 40 idle, and half of the 360 above it because every operator is bound by memory.
  const EnergyForecast one =
      forecast_energy(step(1, 1, 0), 10, invented_gpu(), 4, 2, Calibration({invented_device()}), kPlain);
  EXPECT_DOUBLE_EQ(one.device_watts, 40 + 360 * 0.5);
  EXPECT_DOUBLE_EQ(one.device_joules, 220 * 10 * 4);
  EXPECT_DOUBLE_EQ(one.node_joules, 100 * 10 * 2);
  EXPECT_DOUBLE_EQ(one.joules, (8800 + 2000) * 1.5);
}

TEST(EnergyTest, StaysBetweenIdleAndTheLimit) {
  const Calibration calibration({invented_device()});
  double before = 0;
  for (const double share : {0.0, 0.3, 0.7, 1.0}) {
    const double watts = forecast_energy(step(1, 1, share), 1, invented_gpu(), 1, 1, calibration, kPlain).device_watts;
    EXPECT_GT(watts, before);
    EXPECT_LE(watts, 400);
    before = watts;
  }
  EXPECT_DOUBLE_EQ(forecast_energy(step(0, 1, 1), 1, invented_gpu(), 1, 1, calibration, kPlain).device_watts, 40);
}

TEST(EnergyTest, RefusesAGpuOfUnknownPower) {
  catalogue::Gpu gpu = invented_gpu();
  gpu.tdp_w.reset();
  EXPECT_THROW(forecast_energy(step(1, 1, 0), 1, gpu, 1, 1, Calibration({invented_device()})), base::Error);
}

TEST(EnergyTest, CountsTheSocketsOfAProcessor) {
  catalogue::Cpu cpu;
  cpu.id = "c";
  cpu.tdp_w = 200;
  EXPECT_DOUBLE_EQ(forecast_energy(10, cpu, 2, 1, kPlain).joules, (200 * 2 + 100) * 10 * 1.5);
}

}  // namespace
}  // namespace lockstep::forecast
