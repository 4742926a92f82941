// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/console.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"

namespace lockstep::base {
namespace {

// The exit code of `work` in a process of its own.
int in_child(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    int code = 99;
    try {
      code = work();
    } catch (const Error& error) {
      code = error.exit_code();
    } catch (...) {  // told by the code
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ConsoleTest, NothingReachesTheTerminalButText) {
  EXPECT_EQ(harmless("a\tb\nc \xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80"),
            "a\tb\nc \xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80");
  EXPECT_EQ(harmless("\x1b]52;c;aGk=\x07"), "\\u001b]52;c;aGk=\\u0007");
  EXPECT_EQ(harmless("a\rb\x7f"), "a\\u000db\\u007f");
  EXPECT_EQ(harmless("a\xE2\x80\xAEgnp.exe \xE2\x81\xA6"), "a\\u202egnp.exe \\u2066");
  EXPECT_EQ(harmless("\xC2\x9B"
                     "31m\xC2\xA0"),
            "\\u009b31m\xC2\xA0");  // CSI as one character; a blank is none
  EXPECT_EQ(harmless("\x9B"
                     "31m\xFF\xC3"),
            "\xEF\xBF\xBD"
            "31m\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(harmless(std::string_view("a\0b", 3)), "a\\u0000b");
}

TEST(ConsoleTest, TheStreamsLetOnlyTextPassAndKeepCharactersWhole) {
  const TemporaryFolder folder;
  const Path file = folder.path() / "out";
  const int code = in_child([&] {
    const int out = ::open(file.c_str(), O_WRONLY | O_CREAT, 0600);
    if (::dup2(out, STDOUT_FILENO) < 0 || ::dup2(out, STDERR_FILENO) < 0) return 1;
    open_console();
    std::fputs("\xC3", stderr);  // two writes, one character
    std::fputs("\xA4\x1b\n", stderr);
    for (int i = 0; i < 5000; ++i) std::fputs("a\xE2\x82\xAC", stdout);  // over the ends of buffers
    check_output();
    return 0;
  });
  EXPECT_EQ(code, 0);
  std::string expected = "\xC3\xA4\\u001b\n";
  for (int i = 0; i < 5000; ++i) expected += "a\xE2\x82\xAC";
  EXPECT_EQ(read_file(file), expected);
}

TEST(ConsoleTest, OutputThatIsLostIsTheMachinesError) {
  for (const size_t size : {1, 100'000}) {  // in the buffer until the end, or lost long before
    EXPECT_EQ(in_child([&] {
                const int full = ::open("/dev/full", O_WRONLY);
                if (full < 0 || ::dup2(full, STDOUT_FILENO) < 0) return 1;
                open_console();
                std::fputs(std::string(size, 'x').c_str(), stdout);
                check_output();
                return 0;
              }),
              3);
  }
}

TEST(ConsoleTest, AReaderThatIsGoneHasWhatItWanted) {
  EXPECT_EQ(in_child([] {
              int ends[2];
              if (::pipe(ends) != 0 || ::dup2(ends[1], STDOUT_FILENO) < 0) return 1;
              ::close(ends[0]);
              ::signal(SIGPIPE, SIG_IGN);
              open_console();
              std::fputs("words\n", stdout);
              check_output();
              return 0;
            }),
            0);
}

TEST(ConsoleTest, ClosedStreamsTakeNoFilesNumber) {
  EXPECT_EQ(in_child([] {
              for (const int descriptor : {0, 1, 2}) ::close(descriptor);
              open_console();
              const int next = ::open("/dev/null", O_RDONLY);
              std::fputs("words\n", stdout);
              check_output();
              return next > 2 ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace lockstep::base
