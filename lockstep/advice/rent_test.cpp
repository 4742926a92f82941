// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/rent.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/planning/invented_plan.h"

namespace lockstep::advice {
namespace {

TEST(RentTest, BreaksEvenWhereTheSavedRentPaysTheGpu) {
  // 5,217.86 hours of a dollar saved are 5,217.86 dollars: 100 hours a week of a year.
  EXPECT_NEAR(*break_even_hours_per_week(5217.857, 1, 1.5, 0.5), 100, 1e-3);
  EXPECT_FALSE(break_even_hours_per_week(1000, 3, 0.1, 0.1));
}

TEST(RentTest, CountsSessionsUnderTheOffersOwnLimit) {
  planning::Plan plan = planning::invented_plan({"v100-16"});
  plan.options[0].pace.step = 100;  // 1,000 steps of it are 27.8 h
  const Advice advice = rent(plan, catalogue::load_embedded(), {});
  const auto& first = advice.document.at("offers").items().front();
  EXPECT_EQ(first.at("offer").as_string(), "colab");
  EXPECT_EQ(first.at("sessions").as_int(), 3);
  EXPECT_DOUBLE_EQ(first.at("usd").as_double(), 0);
}

TEST(RentTest, RefusesElectricityInAnotherCurrencyAndGpusThatNobodyRentsOut) {
  planning::Plan plan = planning::invented_plan({"v100-16"});
  plan.assumptions.kwh = 0.3;
  plan.assumptions.currency = "GBP";
  EXPECT_THROW(rent(plan, catalogue::load_embedded(), {}), base::Error);
  EXPECT_THROW(rent(planning::invented_plan({"gtx1060"}), catalogue::load_embedded(), {}), base::Error);
}

}  // namespace
}  // namespace lockstep::advice
