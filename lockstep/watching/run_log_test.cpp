// SPDX-License-Identifier: Apache-2.0
#include "lockstep/watching/run_log.h"

#include <gtest/gtest.h>

#include "lockstep/base/text.h"

namespace lockstep::watching {
namespace {

base::Json event(const std::string& kind, const std::string& rest) {
  return base::parse_json(base::text(R"({"v":1,"t":100,"event":")", kind, "\"", rest.empty() ? "" : ",", rest, "}"),
                          "test");
}

TEST(RunLogTest, AResumeMakesTheStepsBeyondItVoid) {
  RunLog log;
  log.add(event("start", R"("total_steps":9,"host":"a")"));
  for (int step = 1; step <= 4; ++step) log.add(event("step", base::text(R"("loss":2,"seconds":1,"step":)", step)));
  log.add(event("evaluate", R"("step":4,"split":"validate","seconds":7)"));
  const int64_t voids = log.num_voids;
  log.add(event("resume", R"("step":2,"total_steps":9,"host":"b")"));
  EXPECT_EQ(log.step(), 2);
  EXPECT_TRUE(log.evaluations.empty());
  EXPECT_GT(log.num_voids, voids);
  EXPECT_EQ(log.sessions.size(), 2U);
  EXPECT_EQ(log.sessions[0].int_or("to_step", 0), 4);
  EXPECT_DOUBLE_EQ(log.split().total(), 2);
}

TEST(RunLogTest, ARewindIsToldAsAWarningAndAStartForgetsAll) {
  RunLog log;
  log.add(event("start", ""));
  log.add(event("step", R"("step":8,"steps":8,"seconds":1)"));
  log.add(event("rewind", R"("step":4,"from":8,"reason":"a spike")"));
  EXPECT_TRUE(log.steps.empty());
  ASSERT_EQ(log.warnings.size(), 1U);
  EXPECT_EQ(log.warnings[0], "went back to step 4: a spike");
  log.add(event("start", ""));
  EXPECT_TRUE(log.warnings.empty());
}

TEST(RunLogTest, TakesTheTasksOwnFigure) {
  RunLog log;
  log.add(event("start", R"("report":{"training":"absolute_error"})"));
  log.add(event("step", R"("step":1,"absolute_error":0.25,"memory":1000,"watts":300,"joules":40)"));
  const auto points = thin_steps(log, 10);
  ASSERT_EQ(points.size(), 1U);
  EXPECT_DOUBLE_EQ(points.items()[0].double_or("absolute_error", 0), 0.25);
  EXPECT_DOUBLE_EQ(points.items()[0].double_or("memory", 0), 1000);
  EXPECT_DOUBLE_EQ(points.items()[0].double_or("watts", 0), 300);
}

TEST(RunLogTest, TheFirstRecordOfASessionIsNotWarm) {
  RunLog log;
  log.add(event("start", ""));
  for (int step = 1; step <= 2; ++step) log.add(event("step", base::text(R"("seconds":1,"step":)", step)));
  EXPECT_EQ(log.first_warm(), 0U);  // too few to leave one out
  log.add(event("step", R"("seconds":1,"step":3)"));
  EXPECT_EQ(log.first_warm(), 1U);
}

TEST(RunLogTest, KeepsTheLastLinesThatTrainingSaid) {
  RunLog log;
  for (int i = 0; i < 300; ++i) log.add(event("said", base::text(R"("text":"line )", i, R"(\nsecond")")));
  EXPECT_EQ(log.lines.size(), 200U);
  EXPECT_EQ(log.lines.back(), "second");
  EXPECT_EQ(log.lines[198], "line 299");
}

}  // namespace
}  // namespace lockstep::watching
