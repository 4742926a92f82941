// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/money.h"

#include <gtest/gtest.h>

#include "lockstep/catalogue/catalogue.h"

namespace lockstep::forecast {
namespace {

TEST(MoneyTest, RentsAGpuFromEveryCloudWithSourceAndDate) {
  const auto catalogue = catalogue::load_embedded();
  const Costs costs = estimate_costs({.seconds = 7200, .gpus = 4}, {}, false, "h200", catalogue.clouds);
  EXPECT_DOUBLE_EQ(costs.gpu_hours, 8);
  ASSERT_EQ(costs.bills.size(), 2U);
  const Bill* best = costs.cheapest_rent();
  ASSERT_NE(best, nullptr);
  EXPECT_EQ(best->payee, "Nebius");
  EXPECT_DOUBLE_EQ(best->amount, 36);
  EXPECT_EQ(best->unit, "USD");
  EXPECT_EQ(best->rule, "4.50 USD per GPU-hour x 8.00");
  EXPECT_FALSE(best->source.empty());
  EXPECT_EQ(best->date, "2026-08-22");
}

TEST(MoneyTest, ListsAFreeOfferWithItsLimitAndNeverCallsItTheCheapestRent) {
  const auto catalogue = catalogue::load_embedded();
  const Costs costs = estimate_costs({.seconds = 3600, .gpus = 1}, {}, false, "k80", catalogue.clouds);
  ASSERT_EQ(costs.bills.size(), 1U);
  EXPECT_EQ(costs.bills[0].amount, 0);
  EXPECT_EQ(costs.bills[0].limit_h, 12);
  EXPECT_EQ(costs.cheapest_rent(), nullptr);
}

TEST(MoneyTest, ChargesAGrantByTheCentresOwnRule) {
  const auto catalogue = catalogue::load_embedded();
  const spec::Machine lumi = catalogue::to_machine(catalogue.machine("lumi"));
  const Costs costs = estimate_costs({.seconds = 36000, .gpus = 16, .nodes = 2, .gpus_per_node = 8}, lumi, true,
                                     "mi250x", catalogue.clouds);
  ASSERT_EQ(costs.bills.size(), 1U);
  EXPECT_EQ(costs.bills[0].kind, "grant");
  EXPECT_EQ(costs.bills[0].unit, "GPU-hour");
  EXPECT_DOUBLE_EQ(costs.bills[0].amount, 80);  // 2 nodes x 10 h x 4: a module of two dies is one GPU there
  EXPECT_DOUBLE_EQ(costs.core_hours, 20 * 64);
}

TEST(MoneyTest, PaysForWholeNodesUnlessTheSchedulerSharesThem) {
  spec::Machine machine;
  machine.name = "mine";
  machine.cores_per_node = 32;
  machine.prices.node_hour = 3;
  machine.prices.currency = "EUR";
  const Usage one{.seconds = 3600, .gpus = 1, .nodes = 1, .gpus_per_node = 4};
  EXPECT_DOUBLE_EQ(estimate_costs(one, machine, true, "a100-40", {}).bills.at(0).amount, 3);
  machine.scheduler.exclusive_nodes = false;
  EXPECT_DOUBLE_EQ(estimate_costs(one, machine, true, "a100-40", {}).bills.at(0).amount, 0.75);
}

TEST(MoneyTest, CountsElectricityAtTheMachinesPrice) {
  spec::Machine machine;
  machine.prices.kwh = 0.3;
  machine.prices.currency = "GBP";
  const Costs costs = estimate_costs({.seconds = 3600, .gpus = 1, .joules = 7.2e6}, machine, true, "a6000", {});
  ASSERT_EQ(costs.bills.size(), 1U);
  EXPECT_EQ(costs.bills[0].kind, "electricity");
  EXPECT_DOUBLE_EQ(costs.bills[0].amount, 0.6);
}

}  // namespace
}  // namespace lockstep::forecast
