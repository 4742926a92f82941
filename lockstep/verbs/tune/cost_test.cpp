// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/tune/cost.h"

#include <gtest/gtest.h>

#include "lockstep/spec/small_job.h"

namespace lockstep::verbs::tune {
namespace {

spec::Plan plan_of(int64_t gpus, int64_t memory, bool fits) {
  spec::Plan plan;
  spec::PlanOption option;
  option.gpus = gpus;
  option.memory.total = memory;
  option.host_memory.total = 2000;
  option.fits = fits;
  option.total_seconds = 100;
  plan.options.push_back(option);
  return plan;
}

TEST(CostTest, ATrialHasItsShareOfTheNode) {
  EXPECT_TRUE(cost_of(plan_of(0, 4000, true), {0, 2, 10000}).feasible);
  EXPECT_EQ(cost_of(plan_of(0, 4000, true), {0, 2, 10000}).seconds, 200);
  const auto none = cost_of(plan_of(0, 6000, true), {0, 2, 10000});
  EXPECT_FALSE(none.feasible);
  EXPECT_EQ(none.why_not, "it needs 6 kB, its share of the node is 5 kB");
  EXPECT_FALSE(cost_of(plan_of(0, 400, false), {0, 1, 10000}).feasible);
}

TEST(CostTest, RanksOnProcessorsAreSeveralProcesses) {
  const spec::Job job = spec::job_of(spec::kSmallJob, {"training.global_batch=33"});
  EXPECT_EQ(sets_of_rank(job, {"a=1"}, 1), (std::vector<std::string>{"a=1"}));
  EXPECT_EQ(sets_of_rank(job, {}, 2), (std::vector<std::string>{"training.global_batch=17"}));
  EXPECT_EQ(sets_of_rank(job, {"training.global_batch=64"}, 4).back(), "training.global_batch=16");
  EXPECT_TRUE(cost_of(plan_of(0, 4000, true), {0, 1, 10000, 2}).feasible);
  EXPECT_EQ(cost_of(plan_of(0, 6000, true), {0, 1, 10000, 2}).why_not,
            "it needs 12 kB, its share of the node is 10 kB");
  // The samples of an epoch are shared out, the steps are not.
  spec::Plan plan = plan_of(0, 4000, true);
  plan.options[0].job = spec::job_of(spec::kSmallJob, {"training.epochs=3", "training.steps=0"});
  EXPECT_EQ(cost_of(plan, {0, 1, 10000, 2}).seconds, 100);
  plan.options[0].job->training.steps = 50;
  EXPECT_EQ(cost_of(plan, {0, 1, 10000, 2}).seconds, 200);
}

TEST(CostTest, GpusAreNotShared) {
  EXPECT_EQ(cost_of(plan_of(2, 80000, true), {2, 4, 10000}).seconds, 100);
  EXPECT_TRUE(cost_of(plan_of(2, 80000, true), {1, 4, 10000}).feasible);  // not planned
}

}  // namespace
}  // namespace lockstep::verbs::tune
