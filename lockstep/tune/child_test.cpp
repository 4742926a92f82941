// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/child.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <iterator>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"

namespace lockstep::tune {
namespace {

std::vector<std::string> run_to_end(Child& child) {
  std::vector<std::string> lines;
  while (true) {
    const bool over = child.poll();
    for (auto& line : child.take_lines()) lines.push_back(std::move(line));
    if (over) return lines;
    wait_for({&child}, 0.05);
  }
}

TEST(ChildTest, GivesLinesAndExitCode) {
  Child child({"sh", "-c", "echo a; echo $X; printf c; echo why >&2; exit 3"}, {.environment = {{"X", "b"}}});
  EXPECT_EQ(run_to_end(child), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(child.code(), 3);
  EXPECT_EQ(child.trouble(), "exit code 3: why");
}

TEST(ChildTest, EndsWhatHangsAndWhatNeverStopsPrinting) {
  Child hangs({"sleep", "100"}, {.time_limit = 0.05});
  run_to_end(hangs);
  EXPECT_EQ(hangs.trouble(), "took more than 50 ms");
  Child prints({"yes"}, {.most_output = 10000});
  run_to_end(prints);
  EXPECT_EQ(prints.trouble(), "printed more than 10 kB");
  const base::TemporaryFolder folder;
  Child fills({"dd", "if=/dev/zero", base::text("of=", (folder.path() / "x").string()), "bs=1000", "count=100"},
              {.most_file = 5000});
  run_to_end(fills);
  EXPECT_NE(fills.trouble().find("wrote more than 5 kB"), std::string::npos) << fills.trouble();
  Child absent({"/no/such/program"}, {});
  run_to_end(absent);
  EXPECT_EQ(absent.code(), 127);
}

TEST(ChildTest, WritesThroughNoLinkThatStandsInThePlaceOfItsOutput) {
  const base::TemporaryFolder folder;
  const auto victim = folder.path() / "victim", output = folder.path() / "0.out";
  base::write_file(victim, "mine\n");
  std::filesystem::create_symlink(victim, output);
  EXPECT_THROW(Child({"echo", "planted"}, {.output = output.string()}), base::Error);
  EXPECT_EQ(base::read_file(victim), "mine\n");
  std::filesystem::remove(output);
  for (int i = 0; i < 2; ++i) {
    Child child({"echo", "said"}, {.output = output.string()});
    run_to_end(child);
  }
  EXPECT_EQ(base::read_file(output), "said\nsaid\n");
}

TEST(ChildTest, ALogThatCannotBeWrittenLeavesNothingOpen) {
  const auto open = [] { return base::list_folder("/proc/self/fd").size(); };
  const size_t before = open();
  for (const bool has_input : {false, true}) {
    EXPECT_THROW(Child({"true"}, {.output = "/nowhere/log", .has_input = has_input}), base::Error);
  }
  EXPECT_EQ(open(), before);
}

// As a kernel before 5.3, which has none.
void forbid_pidfd() {
  struct sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
                                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const struct sock_fprog program { std::size(rules), rules };
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  base::ensure(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "a filter of system calls");
}

TEST(ChildTest, SeesAnEndSoonOnAKernelThatDoesNotTellIt) {
  const auto look = [] {
    forbid_pidfd();
    Child child({"sh", "-c", "echo a; exec >&-; sleep 0.1; exec 2>&-; sleep 0.1"}, {});
    int waits = 0;
    for (; !child.poll() && waits < 100; ++waits) wait_for({&child}, 60);
    std::_Exit(child.end_descriptor() < 0 && child.ended() ? 0 : 1);
  };
  const double begun = base::steady_seconds();
  EXPECT_EXIT(look(), testing::ExitedWithCode(0), "");
  EXPECT_LT(base::steady_seconds() - begun, 55);
}

TEST(ChildTest, TalksLineByLine) {
  Child child({"cat"}, {.has_input = true});
  ASSERT_TRUE(child.write_line("0.5 0.25"));
  std::vector<std::string> lines;
  while (lines.empty() && !child.poll()) {
    wait_for({&child}, 0.05);
    lines = child.take_lines();
  }
  EXPECT_EQ(lines, std::vector<std::string>{"0.5 0.25"});
}

TEST(ChildTest, FillsTheValuesIn) {
  bool found = false;
  EXPECT_EQ(fill_in({"./p", "--x={x}", "{y}{x}", "{z}"}, {{"x", "1"}, {"y", "2"}}, &found),
            (std::vector<std::string>{"./p", "--x=1", "21", "{z}"}));
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace lockstep::tune
