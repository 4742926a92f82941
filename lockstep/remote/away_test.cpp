// SPDX-License-Identifier: Apache-2.0
#include "lockstep/remote/away.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/site/fake_scheduler.h"

namespace lockstep::remote {
namespace {

using testing::HasSubstr;

// ssh and rsync themselves are tried in tests/slurm/via.sh; here a shell stands in for the login node.
class AwayTest : public testing::Test {
 protected:
  AwayTest() {
    path_.install_script(
        "ssh", base::text("for line; do :; done; cd ", home_.path().string(), "; HOME=", home_.path().string(),
                          " PATH=", home_.path().string(), "/bin:/usr/bin:/bin exec /bin/sh -c \"$line\""));
    path_.install_script("rsync", base::text("echo \"$@\" >> ", (home_.path() / "copied").string()));
    base::make_folders(home_.path() / "bin");
    request_.login = {"ada@login", 0};
    request_.job.name = "pets";
    request_.job.data.train = "synthetic";
    request_.machine = "minotauro";
    request_.run = home_.path() / "here" / "pets";
  }
  void install_there(const std::string& script) {
    base::write_file(home_.path() / "bin/lockstep", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(home_.path() / "bin/lockstep", std::filesystem::perms::owner_all);
  }
  std::string send_complaint() {
    try {
      send(request_);
    } catch (const base::Error& error) {
      return base::text(error.exit_code(), " ", error.what(), " | ", error.fix());
    }
    return "";
  }
  base::TemporaryFolder home_;
  site::FakeScheduler path_;
  SendRequest request_;
};

TEST_F(AwayTest, SubmitsThereAndNotesItHere) {
  install_there("echo Welcome to the cluster; echo \"{\\\"jobs\\\": [\\\"17\\\"], \\\"words\\\": \\\"$*\\\"}\"");
  request_.options = {"--nodes", "2"};
  const Sent sent = send(request_);
  EXPECT_EQ(sent.answer.at("jobs").items()[0].as_string(), "17");
  const std::string folder = (home_.path() / "lockstep/pets").string();
  EXPECT_EQ(sent.answer.at("words").as_string(),
            base::text("submit job.json --run ", folder, "/runs/pets --json - --on minotauro --nodes 2"));
  EXPECT_THAT(base::read_file(home_.path() / "copied"), HasSubstr("/./job.json ada@login:" + folder + "/"));
  EXPECT_EQ(*read_away(request_.run), sent.away);
  install_there("echo \"$PWD: $*\"");
  EXPECT_EQ(relay(sent.away, {"submit", "--status", "a b"}).out, folder + ": submit --status a b\n");
  install_there("echo Welcome; echo \"{\\\"words\\\": \\\"$*\\\"}\"");
  EXPECT_EQ(relay_json(sent.away, {"submit", "--status", "r"}).at("words").as_string(), "submit --status r --json -");
  fetch_if_away(request_.run);
  EXPECT_THAT(base::read_file(home_.path() / "copied"), HasSubstr("--exclude=/checkpoints/"));
  EXPECT_THAT(base::read_file(home_.path() / "copied"), HasSubstr("--no-links --no-devices --no-specials --no-perms"));
  EXPECT_THAT(base::read_file(home_.path() / "copied"), testing::Not(HasSubstr("--exclude=/lock")));
  fetch(sent.away, request_.run, Fetch::everything);  // to go on with: whoever holds it there does not hold it here
  EXPECT_THAT(base::read_file(home_.path() / "copied"), HasSubstr("--exclude=/lock"));
}

TEST_F(AwayTest, SaysWhoMustActThere) {
  EXPECT_THAT(send_complaint(), HasSubstr("3 ada@login has no 'lockstep' on the PATH of a command | install it there"));
  install_there("echo 'lockstep: user error: no such partition' >&2; echo '  fix: name another' >&2; exit 2");
  EXPECT_EQ(send_complaint(), "2 ada@login: no such partition | name another");
  EXPECT_FALSE(read_away(request_.run));  // nothing was submitted
  request_.job.data.train = "nowhere";
  EXPECT_THAT(send_complaint(), HasSubstr("2 data.train: nowhere is neither here nor on ada@login"));
}

TEST_F(AwayTest, AJobWhoseSubmissionWasCutOffIsNotLost) {
  install_there("echo queued >> queue; exit 255");
  EXPECT_THAT(send_complaint(),
              testing::AllOf(HasSubstr("3 cannot log in to ada@login"), HasSubstr("submit --status")));
  ASSERT_TRUE(read_away(request_.run));  // --status can ask there
  const Away noted = *read_away(request_.run);
  install_there("echo 'lockstep: user error: its chain lives' >&2; exit 2");
  EXPECT_THAT(send_complaint(), HasSubstr("2 ada@login: its chain lives"));
  EXPECT_EQ(*read_away(request_.run), noted);  // what was refused changes nothing
}

// A login node that somebody else has taken over.
TEST_F(AwayTest, AHostileAnswerIsAnErrorOfTheMachineThere) {
  install_there("echo '{\"jobs\": []}'");
  const auto answers = [&](const std::string& lines) {
    path_.install_script("ssh", base::text("printf '", lines, "'"));
    return send_complaint();
  };
  EXPECT_THAT(answers("lockstep-folder :etc\\nlockstep-program /x\\n"),
              HasSubstr("3 ada@login: cannot make the folder"));
  EXPECT_THAT(answers("lockstep-folder /f\\nlockstep-program /x\\nlockstep-there 99999999999999999999999\\n"
                      "lockstep-there x\\nlockstep-there -1\\n"),
              HasSubstr("3 submit there gave no answer that can be read"));
}

// What it said ended with 0, or it was killed behind sbatch: the job may run for days.
TEST_F(AwayTest, AJobThatMayHaveBeenQueuedIsNotForgotten) {
  install_there("echo queued; echo '{\"jobs\": '");
  EXPECT_THAT(send_complaint(), HasSubstr("it may stand in the queue there: lockstep submit --status "));
  ASSERT_TRUE(read_away(request_.run));
  const Away noted = *read_away(request_.run);
  for (const char* end : {"kill -9 $$", "exit 3"}) {
    std::filesystem::remove_all(request_.run);
    install_there(end);
    EXPECT_THAT(send_complaint(), HasSubstr("lockstep submit --status ")) << end;
    EXPECT_EQ(read_away(request_.run), noted) << end;
  }
}

TEST_F(AwayTest, FindsTheAnswerBetweenGreetingsWithBraces) {
  install_there(
      "echo '{{{ ask {help} }}}'; printf '{\\n  \"jobs\": [\\n    \"17\"\\n  ],\\n  \"deep\": {\\n    \"x\": 1\\n  "
      "}\\n}\\n'; echo '{bye}'");
  EXPECT_EQ(send(request_).answer.at("jobs").items()[0].as_string(), "17");
}

TEST_F(AwayTest, ARunOfThisMachineIsNotWrittenOver) {
  install_there("echo '{\"jobs\": [\"17\"]}'");
  for (const char* name : {"journal.jsonl", "job.json", "checkpoints", "lock", "ranks", "weights.safetensors"}) {
    const base::TemporaryFolder folder;
    request_.run = folder.path() / "pets";
    base::make_folders(request_.run);
    base::write_file(request_.run / name, "{}");
    EXPECT_THAT(send_complaint(), HasSubstr("pets holds a run of this machine")) << name;
    EXPECT_FALSE(read_away(request_.run));
  }
  EXPECT_FALSE(base::is_there(home_.path() / "copied"));
  request_.run = home_.path() / "empty" / "pets";
  base::make_folders(request_.run);
  send(request_);
  base::write_file(request_.run / "journal.jsonl", "");  // as fetched
  send(request_);
  EXPECT_THROW(refuse_if_away(request_.run), base::Error);
  EXPECT_NO_THROW(refuse_if_away(home_.path()));
}

TEST_F(AwayTest, AnotherRunElsewhereIsNotWrittenOver) {
  install_there("echo '{\"jobs\": [\"17\"]}'");
  const Away first = send(request_).away;
  request_.folder = "elsewhere";
  EXPECT_THAT(send_complaint(),
              HasSubstr("2 " + request_.run.string() + " is the run ada@login:" + first.run + ", not"));
  request_.folder = "";
  request_.login = {"eve@login", 0};
  EXPECT_THAT(send_complaint(), HasSubstr(", not eve@login:"));
  EXPECT_EQ(*read_away(request_.run), first);
}

// rsync takes a:b for a host.
TEST_F(AwayTest, AFolderWithAColonIsAFolder) {
  const base::Path before = std::filesystem::current_path();
  std::filesystem::current_path(home_.path());
  write_away("a:b", {{"ada@login", 0}, "/f", "/f/runs/a", "/bin/true"});
  fetch_if_away("a:b");
  std::filesystem::current_path(before);
  EXPECT_THAT(base::read_file(home_.path() / "copied"), HasSubstr(" " + (home_.path() / "a:b/").string() + "\n"));
}

TEST_F(AwayTest, ANoteThatSomebodyChangedIsRefused) {
  base::make_folders(request_.run);
  base::write_file(request_.run / "via.json",
                   R"({"login": "-oProxyCommand=x", "folder": "/a", "run": "/b", "program": "/c"})");
  EXPECT_THROW(read_away(request_.run), base::Error);
  base::write_file(request_.run / "via.json", R"({"login": "a", "folder": "x", "run": "/b", "program": "/c"})");
  EXPECT_THROW(read_away(request_.run), base::Error);
  EXPECT_FALSE(read_away(request_.run / "other"));
}

}  // namespace
}  // namespace lockstep::remote
