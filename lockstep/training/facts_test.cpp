// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::training {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Promise promise() {
  Promise promise;
  promise.step_seconds = 0.10;
  promise.step_low = 0.08;
  promise.step_high = 0.12;
  promise.samples_per_second = 80;
  promise.memory_bytes = 1e9;
  promise.save_seconds = 1;
  promise.epoch_seconds = 10;
  promise.total_seconds = 20;
  promise.by_class = {{"convolution", 0.05},
                      {"convolution_input_gradient", 0.02},
                      {"convolution_weight_gradient", 0.02},
                      {"elementwise", 0.01}};
  return promise;
}

Facts after(int64_t steps, const StepFact& fact) {
  Facts facts(promise(), 8);
  for (int64_t i = 0; i < Facts::kWarmUp; ++i) facts.step({.seconds = 9, .samples = 8});  // slow, and not counted
  for (int64_t i = 0; i < steps; ++i) facts.step(fact);
  return facts;
}

TEST(FactsTest, SetsWarmFullStepsAgainstThePromise) {
  Facts facts = after(20, {.seconds = 0.15, .data = 0.04, .samples = 8});
  facts.step({.seconds = 0.05, .samples = 2});  // the last batch of an epoch
  facts.memory(1.04e9);
  facts.saved(3);
  facts.epoch(11);
  facts.total(30);
  const auto rows = facts.compare();
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_EQ(rows[0].what, "step");
  EXPECT_NEAR(rows[0].measured, 0.11, 1e-9);
  EXPECT_NEAR(rows[0].deviation(), 0.10, 1e-9);
  EXPECT_TRUE(rows[0].inside());
  EXPECT_EQ(rows[1].what, "samples");
  EXPECT_NEAR(rows[1].measured, (18 * 8 + 2) / (18 * 0.15 + 0.05), 1e-9);  // two steps were for the profile
  EXPECT_FALSE(rows[1].inside());
  EXPECT_TRUE(rows[2].inside());   // memory, 4 % off
  EXPECT_FALSE(rows[3].inside());  // a save three times as long
  EXPECT_TRUE(rows[4].inside());
  EXPECT_FALSE(rows[5].inside());
}

TEST(FactsTest, AStartUpHasAnIntervalToo) {
  Promise two = promise();
  two.jobs = 2;
  two.start_up_seconds = 2;
  two.start_up_low = 1.8;
  two.start_up_high = 4;
  Facts facts(two, 8);
  facts.started(13);
  facts.total(28);
  auto rows = facts.compare();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].what, "start-up");
  EXPECT_FALSE(rows[0].inside());
  EXPECT_NEAR(rows[0].deviation(), 5.5, 1e-9);
  EXPECT_EQ(rows[1].what, "total");
  EXPECT_NEAR(rows[1].low, 16 * 0.8 + 2 * 1.8, 1e-9);  // steps by the step's interval, both start-ups by theirs
  EXPECT_NEAR(rows[1].high, 16 * 1.2 + 2 * 4, 1e-9);
  EXPECT_FALSE(rows[1].inside());
  facts.started(0.5);  // faster than any that was measured: also not what was promised
  EXPECT_FALSE(facts.compare()[0].inside());
  facts.started(3);
  EXPECT_TRUE(facts.compare()[0].inside());
}

TEST(FactsTest, HoldsEachPhaseToItsOwnPromise) {
  Promise two = promise();
  two.phases = {{"head", 0.001, 0.0008, 0.0012, 10, 3e8}, {"all", 0.2, 0.16, 0.24, 0, 1e9}};
  Facts facts(two, 8);
  facts.phase(0);
  facts.features(11);
  for (int64_t i = 0; i < 40; ++i) facts.step({.seconds = i < Facts::kWarmUp ? 9 : 0.0011, .samples = 8});
  EXPECT_EQ(facts.promised_step(), 0.001);
  EXPECT_EQ(facts.promised_memory(), 3e8);
  facts.phase(1);
  for (int64_t i = 0; i < 40; ++i) facts.step({.seconds = i < Facts::kWarmUp ? 9 : 0.3, .samples = 8});
  EXPECT_EQ(facts.promised_step(), 0.2);
  EXPECT_EQ(facts.promised_memory(), 1e9);
  facts.epoch(100);  // of the one or the other
  const auto rows = facts.compare();
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].what, "phase 1: features");
  EXPECT_NEAR(rows[0].deviation(), 0.1, 1e-9);
  EXPECT_TRUE(rows[0].inside());
  EXPECT_EQ(rows[1].what, "phase 1: step");
  EXPECT_NEAR(rows[1].measured, 0.0011, 1e-9);
  EXPECT_TRUE(rows[1].inside());
  EXPECT_EQ(rows[2].what, "phase 2: step");
  EXPECT_NEAR(rows[2].measured, 0.3, 1e-9);
  EXPECT_FALSE(rows[2].inside());
}

TEST(FactsTest, LeavesOutWhatIsNotPromisedOrNotMeasured) {
  EXPECT_TRUE(Facts({}, 8).compare().empty());
  Facts facts({}, 8);
  facts.memory(1);
  facts.total(1);
  EXPECT_TRUE(facts.compare().empty());
}

TEST(FactsTest, ExplainsASlowStepByOperatorClass) {
  Facts facts = after(20, {.seconds = 0.2, .samples = 8});
  facts.profiled({{"convolution", 0.06}, {"convolution_weight_gradient", 0.12}, {"elementwise", 0.011}});
  EXPECT_THAT(facts.explain(), ElementsAre("convolution gradients: 120 ms a step, promised 40 ms",
                                           "convolution: 60 ms a step, promised 50 ms"));
}

TEST(FactsTest, ExplainsBySharesWithoutAProfile) {
  EXPECT_THAT(after(20, {.seconds = 0.2, .communication = 0.05, .samples = 8}).explain(),
              ElementsAre("of a step: computing 75 %, waiting for other ranks 25 %"));
  EXPECT_THAT(after(20, {.seconds = 0.2, .data = 0.1, .samples = 8}).explain(),
              ElementsAre("waiting for data: 50 % of the time"));
  EXPECT_TRUE(after(20, {.seconds = 0.1, .samples = 8}).explain().empty());
}

TEST(FactsTest, IsReadAtAGlance) {
  Facts facts = after(20, {.seconds = 0.2, .samples = 8});
  EXPECT_THAT(to_text(facts.compare()), HasSubstr("+100.0 %  NO"));
  const base::Json row = to_json(facts.compare()).items()[0];
  EXPECT_EQ(row.at("unit").as_string(), "s");
  EXPECT_FALSE(row.at("inside").as_bool());
}

}  // namespace
}  // namespace lockstep::training
