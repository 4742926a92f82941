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

// A free V100 of 2021 stood above everything on a page that said that nothing drives it.
TEST(RentTest, WhatCannotBeDrivenAndWhatIsOldNeverLeads) {
  const planning::Plan plan = planning::invented_plan({"v100-16", "a100-80", "t4"});
  const Advice advice = rent(plan, catalogue::load_embedded(), {.today = "2026-11-18"});
  const auto& offers = advice.document.at("offers").items();
  bool leads = true;
  for (const auto& offer : offers) {
    EXPECT_TRUE(leads || !offer.at("leads").as_bool()) << "behind one that does not";
    leads = offer.at("leads").as_bool();
    EXPECT_FALSE(leads && offer.at("gpu").as_string() == "v100-16");
  }
  const std::string verdict = advice.document.at("verdict").as_string();
  EXPECT_EQ(verdict.find("v100"), std::string::npos) << verdict;
  EXPECT_EQ(verdict.find("free"), std::string::npos) << verdict;
  EXPECT_NE(verdict.find("price of 2026-08-22"), std::string::npos) << verdict;
  const Advice later = rent(plan, catalogue::load_embedded(), {.today = "2028-12-01"});
  EXPECT_NE(later.document.at("verdict").as_string().find("no offer of these can be recommended"), std::string::npos);
}

TEST(RentTest, CountsWholeMonths) {
  EXPECT_EQ(months_since("2021-03", "2026-11-18"), 68);
  EXPECT_EQ(months_since("2026-08-22", "2026-11-18"), 3);
  EXPECT_EQ(months_since("", "2026-11-18"), 0);
}

TEST(RentTest, TakesTheUsersOwnOffers) {
  const auto catalogue = catalogue::load_embedded();
  const auto offers =
      read_offers(base::parse_csv("gpu,price,provider,date\nrtx5090,0.5,next door,2026-11\n", "my.csv"), catalogue);
  ASSERT_EQ(offers.size(), 1U);
  EXPECT_EQ(offers[0].gpus, std::vector<std::string>{"rtx5090"});
  EXPECT_DOUBLE_EQ(*offers[0].usd_per_gpu_hour, 0.5);
  EXPECT_THROW(read_offers(base::parse_csv("gpu,price\nrtx5091,1\n", "my.csv"), catalogue), base::Error);
  for (const char* wrong :
       {"gpu,price\nrtx5090,one\n", "gpu,price\nrtx5090,inf\n", "gpu,price\nrtx5090,\n", "gpu,usd\nrtx5090,0.5\n"}) {
    EXPECT_THROW(read_offers(base::parse_csv(wrong, "my.csv"), catalogue), base::Error) << wrong;
  }
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
