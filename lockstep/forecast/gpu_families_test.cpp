// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/gpu_families.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::forecast {
namespace {

GpuFamilies two_families() {
  GpuFamilies all;
  all.families = {{.name = "old", .capabilities = {"7.0"}}, {.name = "older", .capabilities = {"6.1"}, .like = "old"}};
  all.others.name = "others";
  return all;
}

CarriedStep step_of(const std::string& family, const std::string& origin, double factor,
                    Arithmetic arithmetic = Arithmetic::fp32) {
  return {.family = family,
          .arithmetic = arithmetic,
          .origin = origin,
          .python = true,
          .host = 0.001,
          .device = 1,
          .seconds = factor};
}

TEST(GpuFamiliesTest, ACapabilityBelongsToOneFamilyOrToNone) {
  const GpuFamilies all = load_families();
  EXPECT_EQ(all.of("7.0").name, "Volta");
  EXPECT_EQ(all.of("8.6").name, "GA10x");
  EXPECT_EQ(all.of("12.0").name, "Blackwell");
  EXPECT_EQ(all.of("").name, all.others.name);
}

TEST(GpuFamiliesTest, TheDocumentIsReadAsItWasWritten) {
  const GpuFamilies all = load_families();
  EXPECT_EQ(parse_families(base::parse_json(to_text(all), "f.json")), all);
}

TEST(GpuFamiliesTest, RefusesAFactorThatIsNotAboveZero) {
  std::string words = to_text(load_families());
  words.replace(words.find("\"fp32\": ") + 8, 1, "-");
  EXPECT_THROW(parse_families(base::parse_json(words, "f.json")), base::Error);
}

// Ten rows of one report count as one report does.
TEST(GpuFamiliesTest, AFactorIsTheMeanOverOrigins) {
  std::vector<CarriedStep> steps;
  for (int i = 0; i < 10; ++i) steps.push_back(step_of("old", "a", 0.5));
  steps.push_back(step_of("old", "b", 0.8));
  const GpuFamilies fitted = fit_factors(steps, two_families());
  EXPECT_NEAR(fitted.families[0].factor(Arithmetic::fp32), std::sqrt(0.5 * 0.8), 1e-6);
  EXPECT_EQ(fitted.families[0].rows, 11);
  EXPECT_EQ(fitted.families[0].origins, 2);
}

// A K40 of 2016 took twice what four other reports of its kind say.
TEST(GpuFamiliesTest, OneReportFarFromTheOthersHardlyMovesAFactor) {
  std::vector<CarriedStep> steps;
  for (const char* origin : {"a", "b", "c"}) steps.push_back(step_of("old", origin, 0.8));
  steps.push_back(step_of("old", "d", 2));
  const double with = fit_factors(steps, two_families()).families[0].factor(Arithmetic::fp32);
  EXPECT_GT(with, 0.8);
  EXPECT_LT(with, 0.84);
}

TEST(GpuFamiliesTest, AFamilyWithoutRowsTakesItsRelativesFactor) {
  const GpuFamilies fitted = fit_factors({step_of("old", "a", 0.5), step_of("old", "b", 0.5)}, two_families());
  EXPECT_NEAR(fitted.families[1].factor(Arithmetic::half), 0.5, 1e-9);
  EXPECT_EQ(fitted.families[1].rows, 0);
}

// One origin's figure is drawn half of the way to its family's.
TEST(GpuFamiliesTest, FewRowsAreDrawnTowardsTheFamily) {
  const GpuFamilies fitted = fit_factors(
      {step_of("old", "a", 1, Arithmetic::fp32), step_of("old", "b", 0.5, Arithmetic::half)}, two_families());
  const double family = std::log(0.5) / 2;
  EXPECT_NEAR(std::log(fitted.families[0].factor(Arithmetic::half)), (std::log(0.5) + family) / 2, 1e-6);
  EXPECT_NEAR(std::log(fitted.families[0].factor(Arithmetic::tf32)), family, 1e-6);
}

TEST(GpuFamiliesTest, StepsOfTheHostSayWhatPythonPays) {
  std::vector<CarriedStep> steps = {step_of("old", "a", 1), step_of("old", "b", 1)};
  for (const char* origin : {"c", "d"}) {
    steps.push_back(step_of("old", origin, 2));
    steps.back().host = 1;
    steps.back().device = 0.5;
  }
  const GpuFamilies fitted = fit_factors(steps, two_families());
  EXPECT_NEAR(fitted.python_host, 2, 0.06);
  EXPECT_NEAR(fitted.families[0].factor(Arithmetic::fp32), 1, 1e-6);
}

// They say nothing about its factor, yet are rows of that report.
TEST(GpuFamiliesTest, AReportWhoseStepsAreTheHostsIsCountedAsItsRowsAre) {
  std::vector<CarriedStep> steps = {step_of("old", "a", 0.5), step_of("old", "b", 2), step_of("old", "b", 2)};
  steps[1].host = steps[2].host = 2;
  const GpuFamilies fitted = fit_factors(steps, two_families());
  EXPECT_NEAR(fitted.families[0].factor(Arithmetic::fp32), 0.5, 1e-6);
  EXPECT_EQ(fitted.families[0].rows, 3);
  EXPECT_EQ(fitted.families[0].origins, 2);
  EXPECT_EQ(fitted.others.rows, 3);
  EXPECT_EQ(fitted.others.origins, 2);
}

TEST(GpuFamiliesTest, AnEraIsTheMeanOverItsOriginsWhateverTheGpu) {
  std::vector<CarriedStep> steps = {step_of("old", "a", 0.5), step_of("older", "b", 2), step_of("old", "c", 9)};
  steps[0].era = steps[1].era = "early";
  EXPECT_NEAR(era_factor(steps, "early", Arithmetic::fp32), 1, 1e-9);
  EXPECT_NEAR(era_factor(steps, "never", Arithmetic::fp32), 1, 1e-9);
}

TEST(GpuFamiliesTest, AnIntervalComesFromOriginsThatWereLeftOut) {
  std::vector<CarriedStep> steps;
  for (const auto& [origin, seconds] :
       std::vector<std::pair<std::string, double>>{{"a", 0.5}, {"b", 0.6}, {"c", 0.9}}) {
    steps.push_back(step_of("old", origin, seconds));
  }
  const GpuFamilies fitted = fit_families(steps, two_families());
  EXPECT_FALSE(fitted.families[0].pooled);
  EXPECT_NEAR(fitted.families[0].spread.high, 0.9 / std::sqrt(0.5 * 0.6), 1e-6);
  EXPECT_NEAR(fitted.families[0].spread.low, 0.5 / std::sqrt(0.6 * 0.9), 1e-6);
  EXPECT_TRUE(fitted.families[1].pooled);
  EXPECT_EQ(fitted.families[1].spread, fitted.others.spread);
}

// A family with a report of its own is known better than one that nobody measured.
TEST(GpuFamiliesTest, AFamilyWithoutRowsHasTheIntervalOfFamiliesThatWereLeftOut) {
  GpuFamilies families = two_families();
  families.families.push_back({.name = "new", .capabilities = {"10.0"}, .like = "old"});
  std::vector<CarriedStep> steps;
  for (const char* origin : {"a", "b"}) steps.push_back(step_of("old", origin, 0.8));
  for (const char* origin : {"c", "d"}) steps.push_back(step_of("older", origin, 1.6));
  const GpuFamilies fitted = fit_families(steps, families);
  const Spread pool = fitted.families[0].spread, farther = fitted.families[2].spread;
  EXPECT_TRUE(fitted.families[0].pooled);
  EXPECT_EQ(pool, fitted.families[1].spread);
  EXPECT_NEAR(farther.low, 0.5, 1e-6);  // the one by the other's factor, and the other way round
  EXPECT_NEAR(farther.high, 2, 1e-6);
  EXPECT_GT(pool.low, farther.low);
  EXPECT_LT(pool.high, farther.high);
  EXPECT_EQ(farther, fitted.others.spread);
}

TEST(GpuFamiliesTest, TheArithmeticIsWhatMostOperationsAreDoneIn) {
  Recording recording;
  recording.operators = {{.name = "aten::mm", .type = NumberType::bf16, .flops = 1e9},
                         {.name = "aten::sum", .type = NumberType::fp32, .flops = 1e6}};
  recording.events = {{.kind = EventKind::run, .id = 0}, {.kind = EventKind::run, .id = 1}};
  EXPECT_EQ(arithmetic_of(recording), Arithmetic::half);
  EXPECT_EQ(arithmetic_of({}), Arithmetic::fp32);
}

}  // namespace
}  // namespace lockstep::forecast
