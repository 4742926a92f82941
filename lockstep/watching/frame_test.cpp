// SPDX-License-Identifier: Apache-2.0
#include "lockstep/watching/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::watching {
namespace {

using testing::HasSubstr;
using testing::Not;

Snapshot running() {
  Snapshot run;
  run.name = "pets";
  run.about = "resnet18  11.7M parameters  2 ranks on cuda, amp  node042";
  run.status = Status::running;
  run.step = 180;
  run.total_steps = 330;
  run.epoch = 3.27;
  run.epochs = 6;
  run.loss = 0.3125;
  run.losses = {3, 2, 1, 0.5, 0.3125};
  run.score_name = "top1";
  run.score = 0.9;
  run.scores = {0.5, 0.91, 0.9};
  run.best_score = 0.91;
  run.best_step = 110;
  run.score_is_share = true;
  run.rate = 203;
  run.rates = {200, 210, 203};
  run.step_seconds = 0.296;
  run.elapsed = 60;
  run.time = {.data = 15, .compute = 45};
  run.left = 760;
  run.slowness.findings.push_back({.part = "data",
                                   .share = 0.25,
                                   .measured = 0.07,
                                   .planned = std::nullopt,
                                   .what = "the steps wait for data 25 % of the time",
                                   .advice = "data.threads=4: faster"});
  run.warnings = {"cannot read x.jpg: truncated"};
  for (int i = 0; i < 20; ++i) run.lines.push_back("line " + std::to_string(i));
  return run;
}

int64_t lines_in(const std::string& frame) {
  return std::count(frame.begin(), frame.end(), '\n');
}

TEST(FrameTest, TellsWhatMattersOnASmallScreen) {
  const std::string frame = draw_frame({running()}, {.width = 80, .height = 24, .letters = Letters::ascii});
  EXPECT_LE(lines_in(frame), 24);
  for (const char* words : {"pets", "running", " 55 %", "step 180/330", "epoch 3.27/6", "left 12:40", "203.0 samples/s",
                            "loss     #", "0.3125", "90.0 %  best 91.0 % at step 110", "data wait 25 %", "slow?",
                            "data.threads=4", "warning  cannot read x.jpg", "line 19"}) {
    EXPECT_THAT(frame, HasSubstr(words));
  }
  EXPECT_THAT(frame, HasSubstr("\nlog      line ")) << "also where the first lines of the log were left out";
}

TEST(FrameTest, LeavesOutTheLogBeforeTheProgress) {
  const std::string frame = draw_frame({running()}, {.width = 80, .height = 6, .letters = Letters::ascii});
  EXPECT_EQ(lines_in(frame), 6);
  EXPECT_THAT(frame, HasSubstr("step 180/330"));
  EXPECT_THAT(frame, HasSubstr("0.3125"));
  EXPECT_THAT(frame, Not(HasSubstr("line 19")));
}

TEST(FrameTest, NoLineIsWiderThanTheTerminal) {
  for (const int width : {20, 40, 80, 200}) {
    const std::string frame =
        draw_frame({running(), running()}, {.width = width, .height = 30, .letters = Letters::ascii});
    size_t from = 0;
    for (size_t end = frame.find('\n'); end != std::string::npos; from = end + 1, end = frame.find('\n', from)) {
      EXPECT_LE(end - from, static_cast<size_t>(width)) << frame.substr(from, end - from);
    }
  }
}

TEST(FrameTest, HostileNamesCannotMoveTheCursor) {
  Snapshot run = running();
  run.name = "x\x1b]52;c;QQ==\x07";
  run.lines = {"a\x1b[2Jb", "two\nlines"};
  const std::string frame = draw_frame({run}, {.width = 80, .height = 24, .letters = Letters::ascii});
  EXPECT_EQ(frame.find('\x1b'), std::string::npos);
  EXPECT_THAT(frame, HasSubstr("two lines"));
}

TEST(FrameTest, ColoursOnlyWhereTheyAreAskedFor) {
  EXPECT_THAT(draw_frame({running()}, {.colors = true}), HasSubstr("\x1b[1;32mrunning\x1b[0m"));
  EXPECT_THAT(draw_line(running()), HasSubstr("pets  running  step 180/330  epoch 3.27  loss 0.3125  top1 90.0 %"));
}

TEST(FrameTest, ARunThatHasNotBegunHasLittleToTell) {
  Snapshot run;
  run.name = "new";
  const std::string frame = draw_frame({run}, {.letters = Letters::ascii});
  EXPECT_THAT(frame, HasSubstr("not started"));
  EXPECT_LE(lines_in(frame), 3);
}

}  // namespace
}  // namespace lockstep::watching
