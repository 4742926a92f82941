// SPDX-License-Identifier: Apache-2.0
#include "lockstep/workflow/stage_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/run/journal.h"
#include "lockstep/tune/study_file.h"
#include "lockstep/workflow/small_workflow.h"

namespace lockstep::workflow {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using What = StageOutcome::What;

std::vector<std::string> half_made_files() {
  std::vector<std::string> found;
  for (const auto& entry : base::list_folder(".")) {
    const std::string name = entry.filename().string();
    if (name.find("partial-") != std::string::npos || name.find(".old-") != std::string::npos) found.push_back(name);
  }
  return found;
}

TEST(StageRunTest, AFailureLeavesTheOldOutputAndNothingHalfMade) {
  SmallWorkflow small(R"("a": {"command": ["sh", "-c", "echo new > {output}; exit 7"], "outputs": ["out.txt"]})");
  base::write_file("out.txt", "old");
  const RunResult result = small.run();
  EXPECT_EQ(result.stages[0].what, What::failed);
  EXPECT_EQ(result.stages[0].why, "exit code 7");
  EXPECT_EQ(base::read_file("out.txt"), "old");
  EXPECT_THAT(half_made_files(), IsEmpty());
  EXPECT_EQ(read_attempt(small.paths(), "a")->trouble, "exit code 7");
  EXPECT_THAT(base::read_file(small.paths().log("a")), HasSubstr("== attempt 1: sh -c"));
}

TEST(StageRunTest, AFolderTakesThePlaceOfTheOldOne) {
  SmallWorkflow small(R"("a": {"command": ["sh", "-c", "mkdir {output} && echo 2 > {output}/two"], "outputs": ["d"]})");
  base::make_folders("d");
  base::write_file("d/one", "1");
  EXPECT_EQ(small.run().stages[0].what, What::ran);
  EXPECT_TRUE(base::is_there("d/two"));
  EXPECT_FALSE(base::is_there("d/one"));
  EXPECT_THAT(half_made_files(), IsEmpty());
}

// A kill between the two renames: what was put aside is the only whole output, and the next attempt fails as well.
TEST(StageRunTest, PutsBackTheFolderThatAKilledAttemptPutAside) {
  SmallWorkflow small(R"("a": {"command": ["sh", "-c", ": {output}; exit 1"], "outputs": ["d"]})");
  for (const char* folder : {"d.old-0badcafe", "partial-0badcafe-d"}) base::make_folders(folder);
  base::write_file("d.old-0badcafe/one", "1");
  Attempt killed;
  killed.token = "0badcafe12345678";
  killed.half_made = {"partial-0badcafe-d", "d.old-0badcafe"};
  base::make_folders(small.paths().stage("a"));
  write_attempt(small.paths(), "a", killed);
  EXPECT_EQ(small.run().stages[0].what, What::failed);
  EXPECT_EQ(base::read_file("d/one"), "1");
  EXPECT_THAT(half_made_files(), IsEmpty());
}

// One behind them: the new folder has its place and no record.
TEST(StageRunTest, PutsBackTheFolderWhoseSuccessorHasNoRecord) {
  SmallWorkflow small(R"("a": {"command": ["sh", "-c", ": {output}; exit 1"], "outputs": ["d"]})");
  for (const char* folder : {"d.old-0badcafe", "d"}) base::make_folders(folder);
  base::write_file("d.old-0badcafe/one", "1");
  base::write_file("d/two", "2");
  Attempt killed;
  killed.token = "0badcafe12345678";
  base::make_folders(small.paths().stage("a"));
  write_attempt(small.paths(), "a", killed);
  EXPECT_EQ(small.run().stages[0].what, What::failed);
  EXPECT_EQ(base::read_file("d/one"), "1");
  EXPECT_FALSE(base::is_there("d/two"));
  EXPECT_THAT(half_made_files(), IsEmpty());
}

// That an output is missing is seen when the new folder has its place.
TEST(StageRunTest, AFolderThatIsNotTakenLeavesTheOldOne) {
  SmallWorkflow small(
      R"("a": {"command": ["sh", "-c", "mkdir {output} && echo 2 > {output}/two && rm -f other"], "outputs": ["d", "other"]})");
  base::make_folders("d");
  base::write_file("d/one", "1");
  base::write_file("other", "3");
  EXPECT_EQ(small.run().stages[0].what, What::failed);
  EXPECT_EQ(base::read_file("d/one"), "1");
  EXPECT_FALSE(base::is_there("d/two"));
  EXPECT_EQ(base::read_file("other"), "3");
  EXPECT_THAT(half_made_files(), IsEmpty());
}

// That the second output has no content is seen when the first one has its place.
TEST(StageRunTest, AnOutputThatIsNotTakenLeavesTheOldOnesBesideIt) {
  SmallWorkflow small(
      R"("a": {"command": ["sh", "-c", "for i; do echo new > $i; done; rm $3; mkfifo $3", "0", "{outputs}"],
                               "outputs": ["one", "two", "three"]})");
  base::write_file("one", "old");
  EXPECT_EQ(small.run().stages[0].what, What::failed);
  EXPECT_EQ(base::read_file("one"), "old");
  EXPECT_FALSE(base::is_there("two"));
  EXPECT_FALSE(base::is_there("three"));
  EXPECT_THAT(half_made_files(), IsEmpty());
}

TEST(StageRunTest, AShellsOwnVariableIsNoPlaceholder) {
  SmallWorkflow small(R"("a": {"command": ["sh", "-c", "output=out; echo x > ${output}"], "outputs": ["out"]})");
  EXPECT_EQ(small.run().stages[0].what, What::ran);
  EXPECT_EQ(base::read_file("out"), "x\n");
}

TEST(StageRunTest, AStageSeesTheGpusThatItAskedFor) {
  SmallWorkflow small(R"(
      "none": {"command": ["sh", "-c", "echo gpus ${CUDA_VISIBLE_DEVICES-all} > {output}"], "outputs": ["none"]},
      "one": {"command": ["sh", "-c", "echo gpus ${CUDA_VISIBLE_DEVICES-all} > {output}"], "outputs": ["one"],
              "resources": {"gpus": 1}})");
  RunOptions options = small.options();
  options.gpus = {"3", "5"};
  EXPECT_EQ(run_workflow(options).count(What::ran), 2);
  EXPECT_EQ(base::read_file("none"), "gpus\n");
  EXPECT_EQ(base::read_file("one"), "gpus 3\n");
}

TEST(StageRunTest, AnOutputWrittenByItsOwnNameIsPutBackWhenItFails) {
  SmallWorkflow small(R"("a": {"command": ["sh", "-c", "mkdir d; echo 2 > d/two; test -e good"], "outputs": ["d"]})");
  base::write_file("good", "");
  EXPECT_EQ(small.run().stages[0].what, What::ran);
  base::write_file("d/one", "1");
  std::filesystem::remove("good");
  EXPECT_EQ(small.run().stages[0].what, What::failed);
  EXPECT_EQ(base::read_file("d/one"), "1");
  base::write_file("good", "");
  EXPECT_EQ(small.run().stages[0].what, What::ran);
  EXPECT_FALSE(base::is_there("d/one"));
  EXPECT_THAT(half_made_files(), IsEmpty());
}

TEST(StageRunTest, ACommandThatCannotBeStartedLeavesTheOutput) {
  SmallWorkflow small(R"("a": {"command": ["./absent"], "outputs": ["out"]})");
  base::write_file("out", "old");
  EXPECT_EQ(small.run().stages[0].what, What::failed);
  EXPECT_EQ(base::read_file("out"), "old");
  EXPECT_THAT(half_made_files(), IsEmpty());
}

TEST(StageRunTest, NamesAnOutputThatWasNotWritten) {
  SmallWorkflow small(R"("a": {"command": ["true"], "outputs": ["out"]},
                         "b": {"command": ["sh", "-c", ": {output}"], "outputs": ["other"]})");
  const RunResult result = small.run();
  EXPECT_THAT(result.stages[0].why, HasSubstr("it ended well and did not write out"));
  EXPECT_THAT(result.stages[1].why, HasSubstr("it ended well and did not write other"));
}

TEST(StageRunTest, CopiesFilesAndFolders) {
  SmallWorkflow small(
      R"("one": {"copy": ["a"], "outputs": ["copy"]}, "two": {"copy": ["a", "f"], "outputs": ["both"]})");
  base::make_folders("a");
  base::write_file("a/x", "1");
  base::write_file("f", "2");
  EXPECT_EQ(small.run().count(What::ran), 2);
  EXPECT_EQ(base::read_file("copy/x"), "1");
  EXPECT_EQ(base::read_file("both/a/x"), "1");
  EXPECT_EQ(base::read_file("both/f"), "2");
}

TEST(StageRunTest, ARestartableStageGoesOnAndStartsOverWhenItsInputChanged) {
  SmallWorkflow small(R"("a": {"command": ["sh", "-c", "cat in >> state; test $(wc -l < state) -ge 2 && cp state out"],
      "restartable": true, "state": ["state"], "inputs": ["in"], "outputs": ["out"]})");
  base::write_file("in", "1\n");
  EXPECT_EQ(small.run().stages[0].what, What::failed);
  EXPECT_EQ(small.run().stages[0].what, What::ran);
  EXPECT_EQ(base::read_file("out"), "1\n1\n");
  EXPECT_EQ(read_record(small.paths(), "a")->attempts, 2);
  base::write_file("in", "2\n");
  EXPECT_EQ(small.run().stages[0].what, What::failed);
  EXPECT_EQ(base::read_file("state"), "2\n");
  EXPECT_EQ(base::read_file("state.previous"), "1\n1\n");
  EXPECT_EQ(base::read_file("out.previous"), "1\n1\n");
  EXPECT_EQ(small.run().stages[0].what, What::ran);
  EXPECT_EQ(base::read_file("out"), "2\n2\n");
}

// Jobs on other nodes append to it as well, where NFS does not append at the end that another client has made.
TEST(StageRunTest, WritesToTheJournalUnderItsLock) {
  SmallWorkflow small(R"("a": {"command": ["sh", "-c", "echo x > {output}"], "outputs": ["out"]})");
  base::make_folders(small.paths().root);
  std::optional<tune::LinkLock> other(std::in_place, small.paths().journal());
  std::atomic<bool> waited = false;
  std::jthread release([&] {
    ::usleep(300000);
    waited = !base::is_there(small.paths().journal());
    other.reset();
  });
  EXPECT_EQ(small.run().stages[0].what, What::ran);
  EXPECT_TRUE(waited);
  EXPECT_EQ(run::read_journal(small.paths().journal()).events.size(), 2U);
  EXPECT_FALSE(std::filesystem::is_symlink(small.paths().journal().string() + ".lock"));
}

TEST(StageRunTest, DoesNotWaitForTheJournalsLockOfAKilledStage) {
  SmallWorkflow small(R"("a": {"command": ["sh", "-c", "echo x > {output}"], "outputs": ["out"]})");
  const std::string lock = small.paths().journal().string() + ".lock";
  for (const char* stage : {"a", "b"}) {  // its own, which it holds again, and one that nobody holds
    base::make_folders(small.paths().stage(stage));
    std::filesystem::create_symlink(small.paths().stage(stage) / "../../journal.jsonl", lock);
    const double before = base::steady_seconds();
    RunOptions again = small.options();
    again.again = {"a"};
    EXPECT_EQ(run_workflow(again).stages[0].what, What::ran);
    EXPECT_LT(base::steady_seconds() - before, tune::LinkLock::kGraceSeconds / 2);
  }
}

// The shell's child does not die with the shell: the next attempt ends it by its token.
TEST(StageRunTest, EndsWhatAKilledAttemptLeftBehind) {
  SmallWorkflow small(R"("a": {"command": ["sh", "-c", "sleep 1000 & echo $! > left.pid; wait"], "outputs": ["out"]})");
  const pid_t runner = ::fork();
  if (runner == 0) {
    small.run();
    ::_exit(0);
  }
  for (int i = 0; i < 6000 && (!base::is_there("left.pid") || base::read_file("left.pid").empty()); ++i)
    ::usleep(10000);
  ::kill(runner, SIGKILL);
  ::waitpid(runner, nullptr, 0);
  const auto left = static_cast<pid_t>(std::stol(base::read_file("left.pid")));
  const auto attempt = read_attempt(small.paths(), "a");
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt->trouble, "");
  EXPECT_EQ(::kill(left, 0), 0);                                            // it lives on
  EXPECT_EQ(end_left_behind(small.paths().stage("b"), attempt->token), 0);  // the token in a forged state
  EXPECT_GE(end_left_behind(small.paths().stage("a"), attempt->token), 1);
  for (int i = 0; i < 500 && ::kill(left, 0) == 0; ++i) ::usleep(10000);
  EXPECT_EQ(end_left_behind(small.paths().stage("a"), attempt->token), 0);
  small.describe(R"("a": {"command": ["sh", "-c", "echo x > {output}"], "outputs": ["out"]})");
  EXPECT_EQ(small.run().stages[0].what, What::ran);
}

// Who may write to the folder of a workflow chooses no files of whoever runs it.
TEST(StageRunTest, AForgedAttemptRemovesNothingButWhatTheStageMakes) {
  SmallWorkflow small(R"("a": {"command": ["sh", "-c", "echo x > {output}"], "outputs": ["out"]})");
  for (const char* name : {"thesis", "mine/partial-", "mine/.old-", "sub/out"}) {
    base::make_folders(base::Path(name).parent_path().empty() ? "." : base::Path(name).parent_path());
    base::write_file(name, "mine");
  }
  for (const char* made : {"partial-0badcafe-out", "out.old-0badcafe", "out"}) base::write_file(made, "half");
  Attempt forged;
  forged.token = "0badcafe12345678";
  forged.host = "elsewhere";
  forged.half_made = {
      "thesis", (small.folder() / "mine").string(), "sub/out", "partial-0badcafe-out", "out.old-0badcafe", "out"};
  base::make_folders(small.paths().stage("a"));
  write_attempt(small.paths(), "a", forged);
  EXPECT_EQ(small.run().stages[0].what, What::ran);
  for (const char* name : {"thesis", "mine/partial-", "mine/.old-", "sub/out"})
    EXPECT_TRUE(base::is_there(name)) << name;
  EXPECT_THAT(half_made_files(), IsEmpty());
  forged.token = "";  // of which every name would begin with the mark
  forged.half_made = {"mine/partial-", "mine/.old-"};
  write_attempt(small.paths(), "a", forged);
  base::write_file("out", "changed");
  EXPECT_EQ(small.run().stages[0].what, What::ran);
  EXPECT_TRUE(base::is_there("mine/partial-"));
}

}  // namespace
}  // namespace lockstep::workflow
