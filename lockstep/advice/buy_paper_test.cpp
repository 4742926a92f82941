// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/buy_paper.h"

#include <gtest/gtest.h>

#include "lockstep/planning/invented_plan.h"

namespace lockstep::advice {
namespace {

TEST(BuyAdviceTest, StatesTheYearlyCostAndWhyTheRunnerUpLoses) {
  const auto catalogue = catalogue::load_embedded();
  const PartList part_list(price_parts(catalogue.parts, {}), catalogue);
  std::vector<PlannedJob> jobs;
  jobs.push_back({"job.json", planning::invented_plan({"rtx3090"}), {{.alone = 2}, {.alone = 3}}});
  jobs[0].plan.assumptions.kwh = 0.5;
  jobs[0].plan.assumptions.currency = "GBP";
  const RatedBuild best{part_list.listed({"rtx3090", "i7-8700"}), 0, 2, 0, {}};
  const RatedBuild second{part_list.listed({"rtx3080", "i7-8700"}), 1, 3, 0, {}};
  BuyTerms terms;
  terms.budget = {5000, "GBP"};
  terms.years = {2};
  terms.hours_per_week = 7 / 365.25 * 1000;  // a thousand hours a year
  const Advice advice = buy_advice({terms, jobs, {best, second}, {}, {}, part_list.rules()});
  EXPECT_EQ(advice.document.at("machine").as_string(), "rtx3090, i7-8700");
  EXPECT_EQ(advice.document.at("runner_up_why").as_string(), "1.50 times as long, 1,000 GBP cheaper");
  // 2,100 GBP over two years; 350 + 65 + 100 W for a thousand hours at half a pound.
  EXPECT_NEAR(advice.document.at("per_year").items().front().as_double(), 1050 + 515 * 0.5, 1e-6);
}

}  // namespace
}  // namespace lockstep::advice
