// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/time.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/forecast/calibration.h"
#include "lockstep/forecast/invented_device.h"
#include "lockstep/forecast/python_steps.h"

namespace lockstep::forecast {
namespace {

constexpr double kGigabyteAdd = 1e-3 / 0.8;  // seconds, on the invented device

Operator add_of(double bytes) {
  return {.name = "aten::add", .bytes = bytes};
}

// Two steps that add a gigabyte `adds` times each, twice as often in the first, which is cold and must not count.
Recording adding(int64_t adds) {
  Recording recording;
  recording.steps = 2;
  recording.operators = {add_of(1e9)};
  for (const int64_t often : {2 * adds, adds}) {
    recording.events.push_back({.kind = EventKind::step_begin});
    for (int64_t i = 0; i < often; ++i) recording.events.push_back({.kind = EventKind::run, .id = 0});
    recording.events.push_back({.kind = EventKind::step_end});
  }
  return recording;
}

TimeForecast forecast(const Recording& recording, const Network& network = {}) {
  return forecast_time(recording, invented_gpu(), Calibration({invented_device()}), network);
}

TEST(TimeTest, AddsUpTheOperatorsOfTheLastStep) {
  const TimeForecast ten = forecast(adding(10));
  EXPECT_NEAR(ten.step.value, 10 * kGigabyteAdd, 1e-2 * kGigabyteAdd);
  EXPECT_NEAR(ten.device, 10 * kGigabyteAdd, 1e-2 * kGigabyteAdd);
  EXPECT_NEAR(ten.by_class.at(OperatorClass::elementwise), ten.device, 1e-9);
  EXPECT_NEAR(ten.roofline, 10e-3, 1e-9);
  EXPECT_NEAR(ten.host, 10 * 10e-6, 1e-9);
  EXPECT_FALSE(ten.host_bound);
  EXPECT_EQ(ten.compute_bound_share, 0);
  EXPECT_EQ(ten.step.basis, Basis::measured);
  EXPECT_NEAR(ten.step.low, 0.95 * ten.step.value, 1e-9);
  EXPECT_NEAR(ten.step.high, 1.05 * ten.step.value, 1e-9);
}

TEST(TimeTest, OperatorsWithoutARuleWidenTheInterval) {
  Recording recording = adding(10);
  recording.operators.push_back({.name = "aten::strange", .bytes = 1e9});
  recording.events.insert(recording.events.end() - 1, {.kind = EventKind::run, .id = 1});
  const TimeForecast known = forecast(recording);
  recording.estimated = {"aten::strange"};
  const TimeForecast estimated = forecast(recording);
  EXPECT_EQ(estimated.step.value, known.step.value);
  EXPECT_NEAR(estimated.step.high - known.step.high, 3 * kGigabyteAdd, 1e-2 * kGigabyteAdd);
  EXPECT_NEAR(known.step.low - estimated.step.low, 0.75 * kGigabyteAdd, 1e-2 * kGigabyteAdd);
}

TEST(TimeTest, TheRecordingsLayoutCounts) {
  DeviceCalibration device = invented_device();
  Sample slow = device.samples[2];
  ASSERT_EQ(slow.op.kind, OperatorClass::convolution);
  Recording recording = adding(1);
  recording.operators = {slow.op};
  slow.layout = Layout::contiguous;
  slow.seconds *= 2;
  device.samples.push_back(slow);
  const Calibration calibration({device});
  const double usual = forecast_time(recording, invented_gpu(), calibration).device;
  recording.layout = Layout::contiguous;
  EXPECT_NEAR(forecast_time(recording, invented_gpu(), calibration).device / usual, 2, 0.02);
}

TEST(TimeTest, SmallOperatorsAreBoundByTheirLaunches) {
  Recording small = adding(10);
  small.operators = {add_of(1e3)};
  const TimeForecast ten = forecast(small);
  EXPECT_TRUE(ten.host_bound);
  EXPECT_NEAR(ten.step.value, 10 * 10e-6, 3e-6);
  // It differs with the processor: wider than the 0.95 to 1.05 of the invented device.
  EXPECT_LE(ten.step.low, 0.75 * ten.step.value);
  EXPECT_GE(ten.step.high, 1.35 * ten.step.value);
}

// Where the launching thread takes nearly what the GPU takes, another processor may decide.
TEST(TimeTest, AStepThatIsNearlyHostBoundIsAsUncertain) {
  for (const double share : {0.85, 0.95}) {
    DeviceCalibration device = invented_device();
    device.host.operation = share * kGigabyteAdd;
    const TimeForecast ten = forecast_time(adding(10), invented_gpu(), Calibration({device}));
    EXPECT_FALSE(ten.host_bound);
    EXPECT_NEAR(ten.step.low, (share < 0.9 ? 0.95 : 0.75) * ten.step.value, 1e-9);
    EXPECT_NEAR(ten.step.high, (share < 0.9 ? 1.05 : 1.35) * ten.step.value, 1e-9);
  }
}

TEST(TimeTest, ACapturedStepIsLaunchedAtOnce) {
  Recording small = adding(100);
  small.operators = {add_of(1e3)};
  const TimeForecast one_by_one = forecast(small);
  small.captured = true;
  const TimeForecast at_once = forecast(small);
  EXPECT_LT(at_once.host, 0.1 * one_by_one.host);
  EXPECT_LT(at_once.step.value, 0.5 * one_by_one.step.value);
  EXPECT_FALSE(at_once.host_bound);
}

TEST(TimeTest, SaysThatAnotherGpuIsCarriedOver) {
  catalogue::Gpu other = invented_gpu();
  other.id = "other";
  const TimeForecast ten = forecast_time(adding(10), other, Calibration({invented_device()}));
  EXPECT_EQ(ten.step.basis, Basis::carried_over);
  EXPECT_NEAR(ten.step.high, 1.25 * ten.step.value, 1e-9);
}

// Families of few reports say so, and that they are one or several.
TEST(TimeTest, SaysWhatAFactorAndItsIntervalRestOn) {
  catalogue::Gpu other = invented_gpu();
  other.id = "other";
  other.compute_capability = "8.0";
  const auto words = [&](const GpuFamily& family) {
    GpuFamilies families;
    families.families = {family};
    const auto notes = forecast_time(adding(10), other, Calibration({invented_device()}, families)).notes;
    return notes.empty() ? "" : notes.front();
  };
  GpuFamily family{.name = "A100", .capabilities = {"8.0"}, .rows = 8, .origins = 1, .pooled = true};
  EXPECT_NE(words(family).find("A100's factor in fp32, 1.00: 8 published steps of 1 report; interval: 80 % of all "
                               "families' steps, each report left out in turn;"),
            std::string::npos)
      << words(family);
  family.rows = family.origins = 0;
  EXPECT_NE(words(family).find("0 published steps of 0 reports; interval: 80 % of all families' steps, each family and "
                               "report left out in turn;"),
            std::string::npos)
      << words(family);
  family.rows = 1;
  family.origins = 4;
  family.pooled = false;
  EXPECT_NE(words(family).find("1 published step of 4 reports; interval: 80 % of its steps, each report left out"),
            std::string::npos)
      << words(family);
}

// The GPU and PyTorch's Python are two causes: one's interval does not hide the other's.
TEST(TimeTest, AStepOfPythonIsLessCertainThanItsGpu) {
  catalogue::Gpu other = invented_gpu();
  other.id = "other";
  Recording recording = adding(10);
  recording.source = "torch 2.11.0";
  const TimeForecast python = forecast_time(recording, other, Calibration({invented_device()}));
  const double of_python = std::log(load_python_steps().spread.high);
  EXPECT_NEAR(std::log(python.step.high / python.step.value), std::hypot(of_python, std::log(1.25)), 1e-9);
}

// Ten adds; a bucket of 100 MB is handed over behind the first and waited for behind the last.
Recording reducing(size_t wait_behind) {
  Recording recording = adding(10);
  const auto begin = std::find_if(recording.events.rbegin(), recording.events.rend(), [](const Event& e) {
                       return e.kind == EventKind::step_begin;
                     }).base();
  const auto first = begin - recording.events.begin();
  recording.events.insert(begin + static_cast<std::ptrdiff_t>(wait_behind), {.kind = EventKind::wait, .id = 7});
  recording.events.insert(recording.events.begin() + first + 1,
                          {.kind = EventKind::collective, .id = 7, .bytes = 100'000'000});
  return recording;
}

// A calibration of single operators may be off by a factor of four, and a step may do little but wait.
TEST(TimeTest, AnIntervalDoesNotBeginBelowZero) {
  DeviceCalibration rough = invented_device();
  rough.measured = {0.25, 4};
  const Network slow{.ranks = 2, .nodes = 1, .intra_rate = 1e9};
  const TimeForecast waiting = forecast_time(reducing(2), invented_gpu(), Calibration({rough}), slow);
  EXPECT_GT(waiting.exposed, 0.5 * waiting.step.value);
  EXPECT_GE(waiting.step.low, 0);
}

TEST(TimeTest, ACollectiveHidesBehindComputing) {
  const Network two{.ranks = 2, .nodes = 1, .intra_rate = 100e9, .nvlink = true};
  const TimeForecast hidden = forecast(reducing(10), two);
  EXPECT_GT(hidden.communication, 1.2e-3);
  EXPECT_EQ(hidden.exposed, 0);
  // It takes 15 % of the GPU for as long as it runs.
  const double alone = hidden.step.value - hidden.skew;
  EXPECT_NEAR(alone, 10 * kGigabyteAdd + 0.15 * hidden.communication, 0.02 * kGigabyteAdd);
}

TEST(TimeTest, ACollectiveThatIsWaitedForAtOnceIsExposed) {
  const Network two{.ranks = 2, .nodes = 1, .intra_rate = 100e9, .nvlink = true};
  const TimeForecast exposed = forecast(reducing(1), two);
  EXPECT_NEAR(exposed.exposed, exposed.communication, 1e-9);
  EXPECT_NEAR(exposed.step.value - exposed.skew, 10 * kGigabyteAdd + exposed.communication, 0.02 * kGigabyteAdd);
}

TEST(TimeTest, ManyRanksWaitForTheSlowest) {
  EXPECT_EQ(forecast(adding(10)).skew, 0);
  double before = 0;
  for (const int64_t ranks : {2, 4, 8, 16, 64}) {
    const TimeForecast one = forecast(adding(10), {.ranks = ranks, .intra_rate = 100e9, .nvlink = true});
    EXPECT_GT(one.skew, before);
    EXPECT_LT(one.skew, 0.03 * one.step.value);
    before = one.skew;
  }
}

TEST(TimeTest, CollectivesWithoutALinkAreRefused) {
  EXPECT_THROW(forecast(reducing(1), {.ranks = 2}), base::Error);
}

TEST(TimeTest, ForeseesAProcessor) {
  DeviceCalibration device = invented_device();
  device.rates.kind = DeviceKind::cpu;
  device.rates.id = "measured-cpu";
  device.rates.bandwidth = 30e9;
  device.floor = 0;
  device.host = {};
  device.samples = {{{.name = "aten::add", .bytes = 1e9}, 1 / 15.0, Layout::channels_last, {}}};
  catalogue::Cpu cpu;
  cpu.id = "invented-cpu";
  cpu.cores = 8;
  cpu.base_ghz = 2;
  cpu.fp32_flops_per_cycle = 32;
  cpu.bandwidth_gbs = 60;
  const TimeForecast ten = forecast_time(adding(10), cpu, 8, Calibration({device}));
  EXPECT_NEAR(ten.step.value, 10 / 30.0, 1e-6);  // half of 60 GB/s
  EXPECT_EQ(ten.step.basis, Basis::carried_over);
}

}  // namespace
}  // namespace lockstep::forecast
