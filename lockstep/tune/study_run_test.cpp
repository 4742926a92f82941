// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/study_run.h"

#include <gtest/gtest.h>

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
  auto asked = options(R"({"space": {"x": {"range": [0, 1]}}, "trials": 12, "sampler": "random", "startup": 3,
                          "scheduler": "median"})",
                       "echo $1; echo $1; exec cat /proc/self/fdinfo/0 >/dev/null");
  const StudyResult result = run_study(asked);
  EXPECT_EQ(result.complete + result.pruned, 12);
  ASSERT_TRUE(result.best);
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

TEST_F(StudyRunTest, NeverStartsWhatCannotFitOrBePaid) {
  auto asked = options(R"({"space": {"x": {"range": [0, 1]}}, "trials": 3, "budget": {"node_hours": 1e-9}})", "echo 1");
  const StudyResult result = run_study(asked);
  EXPECT_LE(result.complete, 1);
  EXPECT_EQ(result.stopped, "");
}

}  // namespace
}  // namespace lockstep::tune
