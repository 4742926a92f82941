// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::base {
namespace {

struct Screen {
  double now = 0;
  std::string bytes;

  ProgressOptions options(bool terminal) {
    return {.terminal = terminal,
            .width = 20,
            .every_seconds = 0,
            .clock = [this] { return now; },
            .out = [this](std::string_view more) { bytes += more; }};
  }
};

TEST(ProgressTest, RewritesOneLineOnATerminal) {
  Screen screen;
  {
    Progress progress(screen.options(true));
    progress.show("step 1");
    screen.now = 1;
    progress.show("step 2");
  }
  EXPECT_EQ(screen.bytes, "\rstep 1\x1b[K\rstep 2\x1b[K\n");
}

TEST(ProgressTest, FitsTheWidthOfTheTerminal) {
  Screen screen;
  Progress progress(screen.options(true));
  progress.show("012345678901234567890123456789");
  EXPECT_EQ(screen.bytes, "\r0123456789012345678\x1b[K");
}

TEST(ProgressTest, IsThrottledButKeepsTheLastWord) {
  Screen screen;
  {
    Progress progress(screen.options(false));
    for (int step = 0; step < 1000; ++step) {
      screen.now = 0.01 * step;  // 10 s in all: the first line, none in between
      progress.show("step " + std::to_string(step));
    }
    EXPECT_THAT(screen.bytes, testing::EndsWith("  step 0\n"));
  }
  EXPECT_THAT(screen.bytes, testing::EndsWith("  step 999\n"));
  EXPECT_EQ(std::count(screen.bytes.begin(), screen.bytes.end(), '\n'), 2);
}

TEST(ProgressTest, StampsLogLinesWithTheTime) {
  Screen screen;
  Progress progress(screen.options(false));
  progress.print("epoch 1 done");
  EXPECT_THAT(screen.bytes, testing::ContainsRegex("^20[0-9]+-[0-9]+-[0-9]+ [0-9:]+  epoch 1 done\n$"));
}

TEST(ProgressTest, PrintsAboveTheUpdatingLine) {
  Screen screen;
  {
    Progress progress(screen.options(true));
    progress.show("step 1");
    progress.print("saved");
    progress.show("step 2");  // redrawn at once, because print() took the line away
  }
  EXPECT_EQ(screen.bytes, "\rstep 1\x1b[K\r\x1b[Ksaved\n\rstep 2\x1b[K\n");
}

TEST(ProgressTest, WritesDurationsForPeople) {
  EXPECT_EQ(duration_text(0.42), "0.4 s");
  EXPECT_EQ(duration_text(12), "12 s");
  EXPECT_EQ(duration_text(125), "2:05");
  EXPECT_EQ(duration_text(3723), "1:02:03");
  EXPECT_EQ(duration_text(-1), "?");
}

}  // namespace
}  // namespace lockstep::base
