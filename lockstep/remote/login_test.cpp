// SPDX-License-Identifier: Apache-2.0
#include "lockstep/remote/login.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/site/fake_scheduler.h"

namespace lockstep::remote {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(LoginTest, ReadsWhatSshTakes) {
  EXPECT_EQ(parse_login("ada@login"), (Login{"ada@login", 0}));
  EXPECT_EQ(parse_login("cluster"), (Login{"cluster", 0}));
  EXPECT_EQ(parse_login("ssh://ada@login:2222"), (Login{"ada@login", 2222}));
  for (const char* bad : {"", "-oProxyCommand=x", "ada@-x", "a b", "ada@login:/home", "ssh://login:x", "a;b", "$(x)"}) {
    EXPECT_THROW(parse_login(bad), base::Error) << bad;
  }
}

TEST(LoginTest, NothingIsTakenForAnOption) {
  EXPECT_THAT(ssh_words({"ada@login", 22}, "cd 'it'"),
              ElementsAre("ssh", "-T", "-o", "ConnectTimeout=20", "-o", "ServerAliveInterval=30", "-p", "22", "--",
                          "ada@login", R"w(/bin/sh -c 'eval "$(printf %s Y2QgJ2l0Jw== | base64 -d)"')w"));
  const auto words = rsync_words({"ada@login", 2222}, {"-R"});
  EXPECT_EQ(words[4], "ssh -T -o ConnectTimeout=20 -o ServerAliveInterval=30 -p 2222");
  EXPECT_EQ(words.back(), "--");
  EXPECT_EQ(there({"ada@login", 0}, "a b"), "ada@login:a b");
}

// sshd hands the words to the login shell of the user there, whichever that is. In fish a backslash means something
// within apostrophes: a path of somebody else's job could end the quoting.
TEST(LoginTest, EveryShellThereReadsTheSameLine) {
  const std::vector<std::string> paths{
      "it's", R"(a\)", R"(\'; touch broken; ')", "x'; touch broken; '", "$(touch broken)", "!!", "a\nb", R"("q" *)"};
  const std::string line = "printf '%s|' " + base::shell_words(paths) + "; exit 7";
  const std::string word = ssh_words({"ada@login", 0}, line).back();
  EXPECT_EQ(word.find_first_of("\\!\n"), std::string::npos);
  EXPECT_EQ(std::count(word.begin(), word.end(), '\''), 2);
  const base::TemporaryFolder folder;
  const base::Path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  for (const char* shell : {"sh", "bash", "dash", "zsh", "ksh", "csh", "tcsh", "fish"}) {
    const auto program = site::find_on_path(shell);
    if (!program) continue;
    const site::Answer answer = site::ask({*program, "-c", word}, std::chrono::seconds(60));
    EXPECT_EQ(answer.out, base::join(paths, "|") + "|") << shell << ": " << answer.err;
    EXPECT_EQ(answer.code, 7) << shell;
    EXPECT_FALSE(base::is_there("broken")) << shell;
  }
  std::filesystem::current_path(before);
}

TEST(LoginTest, SaysWhatSshSaid) {
  site::FakeScheduler path;
  path.install_script("ssh", "echo 'ada@login: Permission denied (publickey).' >&2; exit 255");
  try {
    ask_there({"ada@login", 0}, "true", std::chrono::seconds(60));
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.exit_code(), 3);
    EXPECT_THAT(error.what(), HasSubstr("cannot log in to ada@login: ada@login: Permission denied"));
  }
  path.install_script("ssh", "exit 4");  // the line's own exit code
  EXPECT_EQ(ask_there({"ada@login", 0}, "true", std::chrono::seconds(60)).code, 4);
  path.install_script("rsync", "echo 'rsync: connection unexpectedly closed' >&2; exit 12");
  EXPECT_THROW(copy({"ada@login", 0}, {"rsync"}), base::Error);
}

}  // namespace
}  // namespace lockstep::remote
