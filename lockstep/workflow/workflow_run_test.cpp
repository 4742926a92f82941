// SPDX-License-Identifier: Apache-2.0
#include "lockstep/workflow/workflow_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>

#include "lockstep/base/error.h"
#include "lockstep/run/folder.h"
#include "lockstep/workflow/small_workflow.h"

namespace lockstep::workflow {
namespace {

using testing::HasSubstr;
using Outcome = StageOutcome::What;

constexpr const char* kChain = R"(
    "first": {"command": ["sh", "-c", "echo $(date +%N) >> runs; cat source > {output}"], "inputs": ["source"], "outputs": ["a"]},
    "second": {"command": ["sh", "-c", "cut -c 1 a > {output}"], "inputs": ["a"], "outputs": ["b"]},
    "third": {"command": ["cp", "b", "{output}"], "inputs": ["b"], "outputs": ["c"]})";

TEST(WorkflowRunTest, RunsWhatIsOutOfDateAndNoMore) {
  SmallWorkflow small(kChain);
  base::write_file("source", "xy");
  EXPECT_EQ(small.run().count(Outcome::ran), 3);
  EXPECT_EQ(base::read_file("c"), "x\n");
  EXPECT_EQ(small.run().count(Outcome::up_to_date), 3);
  // What comes out with the same content stops the wave.
  base::write_file("source", "xz");
  const RunResult result = small.run();
  EXPECT_EQ(result.stages[0].what, Outcome::ran);
  EXPECT_EQ(result.stages[1].what, Outcome::ran);
  EXPECT_EQ(result.stages[2].what, Outcome::up_to_date);
  EXPECT_EQ(result.stages[0].why, "input source changed");
  EXPECT_GT(read_record(small.paths(), "first")->seconds, 0);
  RunOptions again = small.options();
  again.again = {"third"};
  EXPECT_EQ(run_workflow(again).stages[2].what, Outcome::ran);
}

TEST(WorkflowRunTest, AFailureStopsWhatWaitsForItAndNothingElse) {
  SmallWorkflow small(R"(
      "bad": {"command": ["sh", "-c", "echo disk on fire >&2; exit 1"], "outputs": ["a"]},
      "after": {"command": ["cp", "a", "{output}"], "inputs": ["a"], "outputs": ["b"]},
      "other": {"command": ["sh", "-c", "echo 1 > {output}"], "outputs": ["c"]})");
  const RunResult result = small.run();
  EXPECT_EQ(result.stages[0].what, Outcome::failed);
  EXPECT_EQ(result.stages[0].why, "exit code 1: disk on fire");
  EXPECT_EQ(result.stages[1].what, Outcome::blocked);
  EXPECT_EQ(result.stages[2].what, Outcome::ran);
  EXPECT_EQ(small.run().stages[2].what, Outcome::up_to_date);  // what is done stays done
}

// A pipe has no content to go by: that is found out when the stage's turn has come, and "long" runs.
TEST(WorkflowRunTest, AnInputThatCannotBeReadFailsItsStageAlone) {
  SmallWorkflow small(R"(
      "long": {"command": ["sh", "-c", "while [ ! -e said ]; do sleep .01; done; echo 1 > {output}"], "outputs": ["a"]},
      "first": {"command": ["sh", "-c", "mkfifo {output}"], "outputs": ["b"]},
      "bad": {"command": ["cp", "pipe", "{output}"], "inputs": ["pipe"], "outputs": ["c"]})");
  ASSERT_EQ(::mkfifo("pipe", 0600), 0);
  RunOptions options = small.options();
  options.say = [](std::string_view line) {
    if (line.starts_with("bad: failed")) base::write_file("said", "");
  };
  const RunResult result = run_workflow(options);
  EXPECT_EQ(result.stages[0].what, Outcome::ran);
  EXPECT_EQ(result.stages[1].what, Outcome::failed);  // what it made is no file either
  EXPECT_EQ(result.stages[2].what, Outcome::failed);
  EXPECT_THAT(result.stages[2].why, HasSubstr("pipe is neither a file nor a folder"));
}

TEST(WorkflowRunTest, TriesAgainAsOftenAsItIsTold) {
  SmallWorkflow small(
      R"("a": {"command": ["sh", "-c", "echo x >> tries; test $(wc -l < tries) -ge 3 && echo 1 > {output}"],
                               "outputs": ["a"], "retries": 2})");
  EXPECT_EQ(small.run().stages[0].what, Outcome::ran);
  EXPECT_EQ(base::read_file("tries"), "x\nx\nx\n");
}

// Each waits for the other's file: they end only if they run at the same time.
TEST(WorkflowRunTest, RunsWhatItCanAtTheSameTime) {
  SmallWorkflow small(R"(
      "a": {"command": ["sh", "-c", "touch a-is-here; while [ ! -e b-is-here ]; do sleep .01; done; echo 1 > {output}"], "outputs": ["a"]},
      "b": {"command": ["sh", "-c", "touch b-is-here; while [ ! -e a-is-here ]; do sleep .01; done; echo 1 > {output}"], "outputs": ["b"]})");
  EXPECT_EQ(small.run().count(Outcome::ran), 2);
}

TEST(WorkflowRunTest, StagesThatNeedAllCoresRunOneAfterTheOther) {
  SmallWorkflow small(R"(
      "a": {"command": ["sh", "-c", "test ! -e b-runs; touch a-runs; sleep .1; rm a-runs; echo {cores} > {output}"],
            "outputs": ["a"], "resources": {"cores": 2}},
      "b": {"command": ["sh", "-c", "test ! -e a-runs || exit 1; touch b-runs; sleep .1; rm b-runs; echo 1 > {output}"],
            "outputs": ["b"], "resources": {"cores": 64}})");
  EXPECT_EQ(small.run().count(Outcome::ran), 2);
  EXPECT_EQ(base::read_file("a"), "2\n");
}

TEST(WorkflowRunTest, ASignalStopsItInOrder) {
  SmallWorkflow small(R"(
      "a": {"command": ["sh", "-c", "touch begun; sleep 100; echo 1 > {output}"], "outputs": ["a"]},
      "b": {"command": ["sh", "-c", "cp a {output}"], "inputs": ["a"], "outputs": ["b"]})");
  RunOptions options = small.options();
  options.stop = [] { return base::is_there("begun") ? SIGTERM : 0; };
  const RunResult result = run_workflow(options);
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.stages[0].what, Outcome::stopped);
  EXPECT_EQ(result.stages[1].what, Outcome::waiting);
  EXPECT_FALSE(base::is_there("a"));
}

TEST(WorkflowRunTest, ASignalReachesTheOthersWhenAStageHasStoppedByItself) {
  SmallWorkflow small(R"(
      "a": {"command": ["sh", "-c", "exit 85"], "outputs": ["a"]},
      "b": {"command": ["sh", "-c", "sleep 20; echo 1 > {output}"], "outputs": ["b"]})");
  RunOptions options = small.options();
  options.stop = [&] {
    const auto attempt = read_attempt(small.paths(), "a");
    return attempt && !attempt->trouble.empty() ? SIGTERM : 0;
  };
  const RunResult result = run_workflow(options);
  EXPECT_EQ(result.stages[0].what, Outcome::stopped);
  EXPECT_EQ(result.stages[1].what, Outcome::stopped);
}

TEST(WorkflowRunTest, RefusesWhatIsNotHere) {
  SmallWorkflow small(R"("a": {"command": ["true"], "resources": {"gpus": 2}})");
  try {
    small.run();
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.exit_code(), 3);
    EXPECT_THAT(error.what(), HasSubstr("stage 'a' asks for 2 GPUs, and here are 0"));
  }
  small.describe(R"("a": {"command": ["true"]})");
  const run::RunFolder held(small.paths().root);  // somebody else works on it
  EXPECT_THROW(small.run(), base::Error);
}

TEST(WorkflowRunTest, OneStageAloneAsInAJob) {
  SmallWorkflow small(kChain);
  base::write_file("source", "xy");
  RunOptions options = small.options();
  options.only = "second";
  EXPECT_THAT(run_workflow(options).stages[1].why, HasSubstr("input a is missing"));
  options.only = "first";
  EXPECT_EQ(run_workflow(options).count(Outcome::ran), 1);
  EXPECT_EQ(run_workflow(options).count(Outcome::up_to_date), 1);
}

}  // namespace
}  // namespace lockstep::workflow
