// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/study_run.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/tune/records.h"

namespace lockstep::tune {
namespace {

class StudyRunTest : public testing::Test {
 protected:
  StudyOptions options(const std::string& study, const std::string& script) {
    StudyOptions made;
    made.study = spec::parse_study(base::parse_json(study, "study.json"));
    made.folder = folder_.path() / "study";
    made.program = {"sh", "-c", script, "sh", "{x}", "{trial}"};
    return made;
  }
  Trials read(const std::string& name = "study") {
    return StudyFile(StudyPaths{folder_.path() / "study"}.log(), name, "reader").trials();
  }
  base::TemporaryFolder folder_;
};

TEST_F(StudyRunTest, RunsEveryTrialOnce) {
  auto asked = options(R"({"space": {"x": {"range": [0, 1]}}, "trials": 6, "sampler": "random"})", "echo $1");
  asked.workers = 2;
  const StudyResult result = run_study(asked);
  EXPECT_EQ(result.complete, 6);
  EXPECT_EQ(result.stopped, "");
  const auto trials = read();
  for (const auto& trial : trials.all()) EXPECT_NEAR(*trial.objective, trial.values.at("x"), 1e-12);
  EXPECT_EQ(run_study(asked).complete, 6);  // it is over
  asked.study.trials = 8;
  EXPECT_EQ(run_study(asked).complete, 8);  // and may be lengthened
}

TEST_F(StudyRunTest, TakesOverWhatADeadWorkerLeft) {
  auto asked = options(R"({"space": {"x": {"range": [0, 1]}}, "trials": 3, "sampler": "random"})", "echo $1");
  base::make_folders(asked.folder);
  {
    StudyFile file(StudyPaths{asked.folder}.log(), "study", "nobody-1-2");
    file.make_study(false);
    file.update([&](StudyFile::Update& update) {
      record_new(update, make_space(asked.study, nullptr), {{"x", 0.75}});
    });
  }
  EXPECT_EQ(run_study(asked).complete, 3);
  const Trials trials = read();
  ASSERT_EQ(trials.all().size(), 3U);
  EXPECT_EQ(trials.all()[0].objective, 0.75);
}

TEST_F(StudyRunTest, RetriesACrashAndGivesUpOnWhatCannotWork) {
  auto asked = options(R"({"space": {"x": {"range": [0, 1]}}, "trials": 2, "retries": 1})",
                       base::text("if mkdir ", (folder_.path() / "once").string(), "-$2; then exit 9; fi; echo 1"));
  EXPECT_EQ(run_study(asked).complete, 2);
  asked = options(R"({"name": "other", "space": {"x": {"range": [0, 1]}}, "trials": 20})", "echo no number");
  try {
    run_study(asked);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_NE(std::string(error.what()).find("none of the first 5 trials gave a value; the last: printed no number"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(StudyRunTest, PrunesWithMedian) {
  // The two that are worse than the median of the first three hang until they are pruned.
  auto asked = options(R"({"space": {"x": {"choice": [0.5, 0.25, 0.75, 1.0, 0.125, 1.5]}}, "trials": 6,
                          "sampler": "grid", "startup": 3, "scheduler": "median"})",
                       "echo $1; case $2 in 3|5) exec sleep 600;; esac; echo $1");
  const StudyResult result = run_study(asked);
  EXPECT_EQ(result.complete, 4);
  EXPECT_EQ(result.pruned, 2);
  const Trials trials = read();
  EXPECT_EQ(trials.all()[3].state, TrialState::pruned);
  EXPECT_EQ(trials.all()[5].state, TrialState::pruned);
  ASSERT_TRUE(result.best);
  EXPECT_EQ(result.best->number, 4);
}

// A trial's first run hangs behind its first number until it is paused; promoted, it starts over and comes to its end.
std::string hangs_at_first(const base::Path& folder) {
  return base::text("if mkdir ", (folder / "begun").string(), "-$2; then echo $1; sleep 600; fi; echo $1; echo $1");
}

constexpr const char* kAshaStudy = R"({"space": {"x": {"choice": [0.5, 0.25, 0.75, 1.0, 1.25, 1.5]}}, "trials": 6,
                                       "sampler": "grid", "scheduler": "asha", "asha": {"factor": 3}})";

TEST_F(StudyRunTest, PromotesTheBestAndPrunesTheOthersAtTheEnd) {
  const auto asked = options(kAshaStudy, hangs_at_first(folder_.path()));
  const StudyResult result = run_study(asked);
  EXPECT_EQ(result.complete, 3);  // two of six, then the best three
  EXPECT_EQ(result.pruned, 3);
  EXPECT_EQ(result.paused + result.running, 0);
  ASSERT_TRUE(result.best);
  EXPECT_EQ(result.best->number, 1);
  EXPECT_EQ(result.best->intermediate, (std::map<int64_t, double>{{1, 0.25}, {2, 0.25}}));
  const Trials trials = read();
  EXPECT_EQ(trials.all()[2].state, TrialState::complete);
  EXPECT_EQ(trials.all()[3].state, TrialState::pruned);
  EXPECT_EQ(trials.all()[3].objective, 1.0);  // its last value
  EXPECT_EQ(run_study(asked).pruned, 3);      // it is over
}

TEST_F(StudyRunTest, PausedTrialsOutliveTheSession) {
  auto asked = options(kAshaStudy, hangs_at_first(folder_.path()));
  asked.stop = [&] { return summarise(read()).paused == 2 ? std::string("SIGTERM") : std::string(); };
  const StudyResult stopped = run_study(asked);
  EXPECT_EQ(stopped.paused, 2);
  EXPECT_EQ(stopped.pruned, 0);
  const std::string chain = base::read_file(StudyPaths{asked.folder}.journal());
  EXPECT_NE(chain.rfind("\"step\":2"), std::string::npos) << chain;  // evaluations: the chain makes progress
  asked.stop = [] { return std::string(); };
  const StudyResult result = run_study(asked);
  EXPECT_EQ(result.complete, 3);
  EXPECT_EQ(result.pruned, 3);
}

// Trials of a worker that was killed while they saved, or between the two lines of a promotion; the last is the best.
void leave_paused(const StudyOptions& asked, int64_t count, double node_hours) {
  base::make_folders(asked.folder);
  StudyFile file(StudyPaths{asked.folder}.log(), "study", "nobody-1-2");
  file.make_study(false);
  file.update([&](StudyFile::Update& update) {
    for (int64_t i = 0; i < count; ++i) {
      record_new(update, make_space(asked.study, nullptr), {{"x", static_cast<double>(i)}});
      update.add(7, base::text("\"trial_id\":", i, ",\"step\":1,\"intermediate_value\":", count - i, ".0"));
      record_attr(update, i, Attr::user, "node_hours", node_hours);
      record_pause(update, i);
    }
  });
}

TEST_F(StudyRunTest, APausedTrialOfADeadWorkerIsNobodys) {
  const auto asked = options(kAshaStudy, "echo $1");
  leave_paused(asked, 6, 1);
  const StudyResult result = run_study(asked);
  EXPECT_EQ(result.complete, 3);
  EXPECT_EQ(result.pruned, 3);
  const Trials trials = read();
  EXPECT_EQ(trials.all()[5].state, TrialState::complete);
  EXPECT_EQ(trials.all()[5].system_attrs.int_or("lockstep:takeovers", 0), 0);
}

TEST_F(StudyRunTest, PromotesNothingThatTheBudgetCannotPay) {
  auto asked = options(kAshaStudy, "echo $1");
  leave_paused(asked, 6, 1);
  asked.study.budget.node_hours = 7.5;  // the next rung is 3 times as far: 2 node-hours more
  EXPECT_EQ(run_study(asked).pruned, 6);
}

TEST_F(StudyRunTest, PausesAtARungBehindWhichTheBudgetDoesNotPay) {
  auto asked = options(kAshaStudy, "echo $1; echo $1; echo $1; sleep 30");
  leave_paused(asked, 6, 1);
  asked.study.budget.node_hours = 8;  // to the rung of step 3, not to that of step 9
  const StudyResult result = run_study(asked);
  EXPECT_EQ(result.complete, 0);
  EXPECT_EQ(result.pruned, 6);
  EXPECT_LT(result.node_hours, 6.01);
  EXPECT_EQ(read().all()[5].intermediate.size(), 3U);
}

TEST_F(StudyRunTest, PaysForTheWayToTheEndWhereThatIsNearerThanARung) {
  auto asked = options(kAshaStudy, "echo $1; echo $1; echo $1; sleep 0.5; echo $1");
  leave_paused(asked, 6, 1);
  {
    StudyFile file(StudyPaths{asked.folder}.log(), "study", "planner-1-2");
    file.update([](StudyFile::Update& update) { record_attr(update, 5, Attr::user, "planned_node_hours", 1.25); });
  }
  asked.study.budget.node_hours = 7;
  const StudyResult result = run_study(asked);
  EXPECT_EQ(result.complete, 1);
  EXPECT_EQ(result.pruned, 5);
}

TEST_F(StudyRunTest, AStudyWithABudgetHasACompleteTrialEarly) {
  auto asked = options(kAshaStudy, "for i in 1 2 3 4 5; do echo $1; sleep 0.1; done");
  asked.study.trials = 1;
  asked.study.budget.node_hours = 1;
  EXPECT_EQ(run_study(asked).complete, 1);
  EXPECT_EQ(base::read_file(StudyPaths{asked.folder}.log()).find(kPausedAttr), std::string::npos);
}

TEST_F(StudyRunTest, StopsAndGoesOnWithTheSameTrial) {
  auto asked = options(R"({"space": {"x": {"range": [0, 1]}}, "trials": 2, "sampler": "random"})", "sleep 60; echo 1");
  int asks = 0;
  asked.stop = [&] { return ++asks > 2 ? std::string("SIGTERM") : std::string(); };
  const StudyResult stopped = run_study(asked);
  EXPECT_EQ(stopped.stopped, "SIGTERM");
  EXPECT_EQ(stopped.running, 1);
  asked.stop = [] { return std::string(); };
  asked.program = {"sh", "-c", "echo $1", "sh", "{x}"};
  EXPECT_EQ(run_study(asked).complete, 2);
  EXPECT_EQ(read().all().size(), 2U);
}

// One that takes longer than a job of a chain lasts trains on all the same.
TEST_F(StudyRunTest, TheEvaluationsOfARunningTrialAreProgressOfTheChain) {
  auto asked = options(R"({"space": {"x": {"range": [0, 1]}}, "trials": 1, "scheduler": "median"})",
                       "echo 1; echo 2; echo 3; sleep 600");
  asked.stop = [&] {
    const Trials trials = read();
    const bool all = !trials.all().empty() && trials.all()[0].intermediate.size() == 3;
    return all ? std::string("SIGTERM") : std::string();
  };
  EXPECT_EQ(run_study(asked).running, 1);
  const std::string chain = base::read_file(StudyPaths{asked.folder}.journal());
  EXPECT_NE(chain.rfind("\"step\":3"), std::string::npos) << chain;
}

// A stand-in for `lockstep train` that says where it trains. While a trial is planned another worker adds so many that
// the list of trials moves.
TEST_F(StudyRunTest, ATrialStaysItselfWhileOthersAreAdded) {
  auto asked = options(R"({"space": {"training.seed": {"range": [1, 9]}}, "trials": 1, "sampler": "random"})", "");
  base::make_folders(asked.folder);
  const base::Path program = folder_.path() / "lockstep";
  base::write_file(program, base::text("#!/bin/sh\necho \"$4\" > ", (folder_.path() / "told").string(), "\nexit 2\n"));
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  asked.program.clear();
  asked.lockstep = program.string();
  asked.plan = [&](const std::vector<std::string>&) {
    StudyFile other(StudyPaths{asked.folder}.log(), "study", "other-1-2");
    other.update([&](StudyFile::Update& update) {
      for (int i = 0; i < 100; ++i) {
        const int64_t id = update.trials().next_trial_id();
        record_new(update, make_space(asked.study, nullptr), {{"training.seed", 2}});
        record_end(update, id, TrialState::failed, std::nullopt);
      }
    });
    return TrialCost{.seconds = 60};
  };
  run_study(asked);
  EXPECT_EQ(base::read_file(folder_.path() / "told"), (asked.folder / "trials/0").string() + "\n");
}

// Trials of a job whose program says that it was started, and fails; each is planned to take so many node-hours.
class PlannedStudyTest : public StudyRunTest {
 protected:
  StudyOptions planned(int64_t trials, double node_hours) {
    auto asked = options(
        base::text(R"({"space": {"training.seed": {"range": [1, 9]}}, "sampler": "random", "trials": )", trials, "}"),
        "");
    base::make_folders(asked.folder);
    const base::Path program = folder_.path() / "lockstep";
    base::write_file(program, base::text("#!/bin/sh\necho \"$4\" >> ", told().string(), "\nexit 2\n"));
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    asked.program.clear();
    asked.lockstep = program.string();
    asked.say = [this](const std::string& line) { said_.push_back(line); };
    asked.workers = 2;  // a node-hour is two hours of each
    asked.plan = [node_hours](const std::vector<std::string>&) { return TrialCost{.seconds = node_hours * 7200}; };
    return asked;
  }
  base::Path told() const { return folder_.path() / "told"; }
  int64_t started() const { return base::is_there(told()) ? lines(base::read_file(told())) : 0; }
  static int64_t lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }
  std::string log() const { return base::read_file(StudyPaths{folder_.path() / "study"}.log()); }

  std::vector<std::string> said_;
};

TEST_F(PlannedStudyTest, WhatIsUnderWayIsPartOfTheBudget) {
  auto asked = planned(2, 1);
  asked.study.budget.node_hours = 1.5;
  const StudyResult result = run_study(asked);
  // Beside the first the second cannot be paid; when that has ended, having cost next to nothing, it can.
  EXPECT_NE(log().find("\"trial_id\":1,\"state\":4"), std::string::npos) << log();
  EXPECT_EQ(started(), 2);
  EXPECT_EQ(result.failed, 2);
  EXPECT_EQ(result.unpaid, 0);
}

TEST_F(PlannedStudyTest, ATrialThatIsTooDearWaitsForALargerBudget) {
  auto asked = planned(2, 2);
  asked.study.budget.node_hours = 1;
  asked.study.trials = 20;
  const StudyResult poor = run_study(asked);
  EXPECT_EQ(started(), 0);
  EXPECT_EQ(poor.failed, 0);
  EXPECT_GT(poor.unpaid, 0);
  const size_t made = read().all().size();
  EXPECT_LE(made, 2U);  // one a worker: no other is drawn in its place
  ASSERT_FALSE(said_.empty());
  EXPECT_NE(said_.front().find("would take 2.000 node-hours, and 1.000 are left"), std::string::npos) << said_.front();
  asked.study.budget.node_hours = 10;
  asked.study.trials = static_cast<int64_t>(made);
  const StudyResult rich = run_study(asked);
  EXPECT_EQ(started(), static_cast<int64_t>(made));
  EXPECT_EQ(rich.unpaid, 0);
  EXPECT_EQ(read().all().size(), made);
}

TEST_F(StudyRunTest, NeverStartsWhatCannotFitOrBePaid) {
  auto asked = options(R"({"space": {"x": {"range": [0, 1]}}, "trials": 3, "budget": {"node_hours": 1e-9}})", "echo 1");
  const StudyResult result = run_study(asked);
  EXPECT_LE(result.complete, 1);
  EXPECT_EQ(result.stopped, "");
}

}  // namespace
}  // namespace lockstep::tune
