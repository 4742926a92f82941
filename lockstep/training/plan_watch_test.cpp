// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/plan_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/run/journal.h"

namespace lockstep::training {
namespace {

using base::Json;
using testing::HasSubstr;

// Holds `steps` steps of 0.2 s to a plan of 0.1 s; returns what was journalled.
std::vector<Json> watch(const base::Path& folder, int64_t steps, std::string& said, int64_t sessions = 1) {
  const spec::Job job = spec::parse_job(base::parse_json(R"({"name": "a", "data": {"train": "synthetic", "samples": 80},
    "model": {"name": "smallcnn", "classes": 4}, "training": {"global_batch": 8, "epochs": 4}})",
                                                         "job.json"));
  spec::PlanOption option;
  option.title = "here";
  option.step_seconds = {.value = 0.1, .low = 0.09, .high = 0.11};
  option.total_seconds = 5;
  option.start_up_seconds = 30;
  option.jobs = 0;
  option.epoch_seconds = 3;
  option.memory.total = 1'000'000'000;
  spec::Plan plan;
  plan.job = job;
  plan.options = {option};
  base::write_json(folder / "plan.json", spec::to_json(plan));
  const run::Timetable timetable(job.training, 80);
  const run::RunPaths paths{folder};
  Logger logger;
  logger.say = [&](std::string_view line) { said += line; };
  Ledger ledger(paths, timetable, objective::make_objective(spec::Job()), logger);
  TrainOptions options;
  options.plan = folder / "plan.json";
  PlanWatch plan_watch(job, options, 1, ledger);
  for (int64_t step = 1; step <= steps; ++step) {
    plan_watch.before_step(timetable.ends_epoch(step - 1));
    const double seconds = step == 1 ? 2.1 : 0.2;  // the first one chooses kernels
    plan_watch.step(step, {.seconds = seconds, .compute = seconds, .samples = 8});
    if (timetable.ends_epoch(step)) plan_watch.end_epoch();
  }
  plan_watch.end(steps, 8.0, sessions);
  return run::read_journal(paths.journal()).named("promise");
}

TEST(PlanWatchTest, TellsAndJournalsAfterTheWarmUpAndAtTheEnd) {
  const base::TemporaryFolder temporary;
  std::string said;
  const auto events = watch(temporary.path(), 40, said);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].at("when").as_string(), "warm");
  EXPECT_EQ(events[0].at("step").as_int(), 20);
  EXPECT_EQ(events[1].at("when").as_string(), "end");
  const auto& rows = events[1].at("rows").items();
  ASSERT_EQ(rows.size(), 5U);  // start-up, step, peak memory, epoch, total
  EXPECT_EQ(rows[0].at("what").as_string(), "start-up");
  EXPECT_GT(rows[0].at("measured").as_double(), 0);
  EXPECT_EQ(rows[1].at("what").as_string(), "step");
  EXPECT_NEAR(rows[1].at("deviation").as_double(), 1, 1e-6);
  EXPECT_EQ(rows[4].at("what").as_string(), "total");
  // 2 s of the first step are start-up too: the run's 8 s have them already.
  EXPECT_NEAR(rows[4].at("measured").as_double(), 8 + rows[0].at("measured").as_double() - 2, 1e-6);
  EXPECT_EQ(events[1].at("why").size(), 1U);
  EXPECT_THAT(said, HasSubstr("promise against fact after step 20 (here)"));
}

TEST(PlanWatchTest, EachSessionStartsUp) {
  const base::TemporaryFolder temporary;
  std::string said;
  const auto events = watch(temporary.path(), 40, said, 3);
  const auto& rows = events.back().at("rows").items();
  const double before = rows[0].at("measured").as_double() - 2;  // the program begins to train
  EXPECT_NEAR(rows[4].at("measured").as_double(), 8 + 3 * before, 1e-6);
}

TEST(PlanWatchTest, AShortRunIsToldOnceAtItsEnd) {
  const base::TemporaryFolder temporary;
  std::string said;
  EXPECT_EQ(watch(temporary.path(), 7, said).size(), 1U);
}

TEST(PlanWatchTest, KnowsThePeakOfThisProcess) {
  EXPECT_GT(peak_memory(at::kCPU), 10e6);
}

}  // namespace
}  // namespace lockstep::training
