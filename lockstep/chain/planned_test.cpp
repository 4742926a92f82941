// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/planned.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/forecast/collective.h"

namespace lockstep::chain {
namespace {

spec::PlanOption option(int64_t nodes, std::optional<double> seconds, int64_t jobs) {
  spec::PlanOption option;
  option.nodes = nodes;
  option.feasible = seconds.has_value();
  option.total_seconds = seconds;
  option.jobs = jobs;
  return option;
}

TEST(PlannedTest, ReadsTheShapesOfAPlan) {
  spec::Plan plan;
  plan.options = {option(1, {}, 0), option(2, 7200, 2), option(2, 5400, 2)};
  plan.options[0].why = {"a walltime of 60 s ends first"};
  const Planned planned = parse_shapes(plan);
  ASSERT_EQ(planned.shapes.size(), 2u);
  EXPECT_EQ(planned.of(1)->why_not, "a walltime of 60 s ends first");
  EXPECT_EQ(planned.of(2)->seconds, 5400);
  EXPECT_EQ(planned.of(2)->jobs, 2);
  EXPECT_EQ(planned.of(4), nullptr);
}

TEST(PlannedTest, TakesTheUsersHours) {
  const Planned planned = parse_hours("1=2.5,4=0.5", 3600);
  EXPECT_EQ(planned.of(1)->seconds, 9000);
  EXPECT_EQ(planned.of(1)->jobs, 3);
  EXPECT_EQ(planned.of(4)->jobs, 1);
  for (const char* bad : {"", "2", "x=1", "1=", "1=0", "1=nan", "1=2;2=3"}) {
    EXPECT_THROW(parse_hours(bad, 0), base::Error) << bad;
  }
}

// 1000 steps of 4 s on one node, 100 s of evaluations, saves of 5 s (three of them), 25 million parameters.
spec::Plan one_node() {
  spec::PlanOption one = option(1, 4145, 1);
  one.steps = 1000;
  one.step_seconds = {.value = 4, .low = 3, .high = 5};
  one.evaluation_seconds = 100;
  one.saves_seconds = 15;
  one.save_seconds = 5;
  one.restore_seconds = 2;
  one.start_up_seconds = 30;
  spec::Plan plan;
  plan.parameters = 25'000'000;
  plan.options = {one};
  return plan;
}

PlanQuestion nodes_asked() {
  PlanQuestion question;
  question.machine.name = "site";
  question.nodes = {1, 2, 4};
  return question;
}

TEST(PlannedTest, EstimatesSeveralNodesOfProcessorsFromOne) {
  PlanQuestion question = nodes_asked();
  question.machine.links.inter.rate = 1e9;
  question.machine.links.inter.latency = 1e-9;
  const spec::Plan plan = one_node();
  Planned planned = parse_shapes(plan);
  estimate_nodes(plan, question, planned);
  EXPECT_EQ(planned.of(1)->seconds, 4145);
  EXPECT_EQ(planned.of(1)->note, "");
  // Half of each step and evaluation, and 100 MB twice half the way at what MPI gets of 1 GB/s.
  const double sum = forecast::mpi_collective_seconds(forecast::CollectiveKind::all_reduce, 1e8,
                                                      {.ranks = 2, .nodes = 2, .inter_rate = 1e9});
  EXPECT_NEAR(planned.of(2)->seconds, 30 + 1000 * (2 + sum) + 50 + 15, 0.1);
  EXPECT_LT(planned.of(4)->seconds, planned.of(2)->seconds);
  EXPECT_THAT(planned.of(4)->note, testing::HasSubstr("an estimate: the steps of one node shared by 4"));
  question.walltime = 600;
  Planned short_jobs = parse_shapes(plan);
  estimate_nodes(plan, question, short_jobs);
  EXPECT_EQ(short_jobs.of(4)->jobs, 3);
}

TEST(PlannedTest, WithoutALinkItSaysWhatToGive) {
  const spec::Plan plan = one_node();
  Planned planned = parse_shapes(plan);
  estimate_nodes(plan, nodes_asked(), planned);
  EXPECT_EQ(planned.of(2)->seconds, 0);
  EXPECT_THAT(planned.of(2)->note, testing::HasSubstr("--site links.inter.rate="));
  PlanQuestion gpus = nodes_asked();
  gpus.machine.gpus_per_node = 4;
  Planned of_gpus = parse_shapes(plan);
  estimate_nodes(plan, gpus, of_gpus);  // the plan itself knows those
  EXPECT_EQ(of_gpus.of(2), nullptr);
}

TEST(PlannedTest, TellsWhyThereIsNoPlan) {
  PlanQuestion question;
  question.program = "/bin/false";
  question.machine.name = "site";
  const Planned nothing = ask_plan(question);
  EXPECT_TRUE(nothing.shapes.empty());
  question.program = "/no/such/program";
  EXPECT_THAT(ask_plan(question).why_not, testing::HasSubstr("did not answer"));
}

TEST(PlannedTest, NamesTheUsersMachineAndNotTheFileMadeForTheQuestion) {
  const base::TemporaryFolder folder;
  const base::Path program = folder.path() / "lockstep";
  base::write_file(program,
                   "#!/bin/sh\necho \"lockstep: user error: $4: no such GPU; $2: no such model\" >&2\nexit 2\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  PlanQuestion question = nodes_asked();
  question.program = program.string();
  const Planned planned = ask_plan(question);
  EXPECT_TRUE(planned.is_users_fault);
  EXPECT_EQ(planned.why_not, "lockstep: user error: site: no such GPU; the job: no such model");
}

}  // namespace
}  // namespace lockstep::chain
