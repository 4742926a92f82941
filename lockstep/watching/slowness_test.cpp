// SPDX-License-Identifier: Apache-2.0
#include "lockstep/watching/slowness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/text.h"

// Journals of real runs with a stage made slow: lockstep/training/slow_runs_test.cpp.
namespace lockstep::watching {
namespace {

using testing::HasSubstr;

RunLog log_of(const std::vector<std::string>& events) {
  RunLog log;
  int time = 0;
  for (const auto& each : events) {
    log.add(base::parse_json(base::text(R"({"v":1,"t":)", ++time, ",", each, "}"), "test"));
  }
  return log;
}

std::string step(int number, const std::string& split) {
  return base::text(R"("event":"step","step":)", 10 * number, R"(,"steps":10,"samples":80,)", split);
}

TEST(SlownessTest, SaysNothingWithoutASingleStep) {
  EXPECT_TRUE(explain_slowness(log_of({R"("event":"start","cores":4)"}), {}).findings.empty());
}

TEST(SlownessTest, CachedFeaturesAreNoPartOfItsShares) {
  const auto said = [](const std::vector<std::string>& events) {
    return explain_slowness(log_of(events), {}).findings.back().what;
  };
  const std::string warm = step(1, R"("seconds":9,"compute":9)"), later = step(2, R"("seconds":9,"compute":9)");
  const std::string start = R"("event":"start","cores":4)";
  EXPECT_THAT(said({start, warm, later}), testing::Not(HasSubstr("features")));
  EXPECT_THAT(said({start, R"("event":"features","step":0,"samples":9,"seconds":40)", warm, later}),
              HasSubstr("100 % of the time, 900 ms a step (without the cached features)"));
}

TEST(SlownessTest, WaitingForDataNamesTheThreadsThatWouldDo) {
  // 10 steps in 10 s, of which 6 s waiting: one thread is busy all the time, 2.5 of them would keep up.
  const RunLog log = log_of({R"("event":"start","cores":8)", step(1, R"("seconds":10,"data":6,"compute":4)"),
                             R"("event":"loader_bottleneck","stage":"decode","stage_share":0.8,"waited_share":0.6,
                                "threads_needed":2.5,"more_cores":2,"threads":1,"from_shards":true)"});
  const Slowness slowness = explain_slowness(log, {});
  ASSERT_EQ(slowness.findings.size(), 2U);
  const Finding& data = slowness.findings[0];
  EXPECT_EQ(data.part, "data");
  EXPECT_DOUBLE_EQ(data.share, 0.6);
  EXPECT_DOUBLE_EQ(data.measured, 0.6);
  EXPECT_EQ(data.setting, "data.threads=3");
  EXPECT_NEAR(data.gain, 0.6, 1e-9);  // three threads do a step's 1 s of work in 0.33 s, the step takes 0.4 s
  EXPECT_THAT(data.what, HasSubstr("decode takes 80 %"));
  EXPECT_THAT(data.advice, HasSubstr("2.50 times as fast"));
}

TEST(SlownessTest, SaysHowFarTheCoresGoWhereTheyDoNotDo) {
  const RunLog log = log_of({R"("event":"start","cores":2)", step(1, R"("seconds":10,"data":8,"compute":2)"),
                             R"("event":"loader_bottleneck","stage":"decode","stage_share":0.8,"waited_share":0.8,
                                "threads_needed":5,"more_cores":4,"threads":1)"});
  const Finding data = explain_slowness(log, {}).findings.at(0);
  EXPECT_EQ(data.setting, "data.threads=2");
  EXPECT_NEAR(data.gain, 0.5, 1e-9);
  EXPECT_THAT(data.advice, HasSubstr("--max-side"));
}

TEST(SlownessTest, ThreadsThatWouldDoNeedACoreNotMoreThreads) {
  const RunLog log =
      log_of({R"("event":"start","cores":4,"threads":4)", step(1, R"("seconds":10,"data":2,"compute":8)"),
              R"("event":"loader_bottleneck","stage":"augment","stage_share":0.8,"waited_share":0.2,
                                "threads_needed":1.5,"more_cores":0,"threads":4)"});
  EXPECT_EQ(explain_slowness(log, {}).findings.at(0).setting, "training.threads=3");
}

TEST(SlownessTest, ReadingIsHelpedByACopyOnTheNode) {
  const RunLog log = log_of({R"("event":"start")", step(1, R"("seconds":10,"data":5,"compute":5)"),
                             R"("event":"loader_bottleneck","stage":"read","stage_share":0.9,"waited_share":0.5,
                                "threads_needed":2,"threads":1,"from_shards":true)"});
  EXPECT_EQ(explain_slowness(log, {}).findings.at(0).setting, "data.stage=auto");
}

TEST(SlownessTest, ASlowRankIsNamedWithItsHost) {
  const RunLog log =
      log_of({R"("event":"start","ranks":4)", step(1, R"("seconds":10,"data":0,"compute":4,"communication":6)"),
              R"("event":"rank_times","step":10,"steps":10,"ranks":4,
                                "slowest":{"rank":3,"host":"node07","own":9,"data":0},
                                "median":{"rank":1,"host":"node01","own":4,"data":0})"});
  const Slowness slowness = explain_slowness(log, {});
  const Finding& rank = slowness.findings.at(0);
  EXPECT_EQ(rank.part, "rank");
  EXPECT_NEAR(rank.share, 0.5, 1e-9);
  EXPECT_THAT(rank.what, HasSubstr("rank 3 on node07 takes 900 ms a step"));
  EXPECT_THAT(rank.setting, HasSubstr("--exclude=node07"));
  EXPECT_EQ(slowness.findings.at(1).part, "communication");  // what is left of it
  EXPECT_NEAR(slowness.findings.at(1).share, 0.1, 1e-9);
}

TEST(SlownessTest, HalfTheBytesOfAnExchangeTakeHalfTheTime) {
  spec::Job job;
  const RunLog log =
      log_of({R"("event":"start","ranks":2)", step(1, R"("seconds":10,"data":0,"compute":6,"communication":4)")});
  spec::PlanOption option;
  option.time = spec::PlanTime{.exposed = 0.1};
  const Finding found = explain_slowness(log, {.job = &job, .option = &option}).findings.at(0);
  EXPECT_EQ(found.part, "communication");
  EXPECT_EQ(found.setting, "training.reduce_precision=bf16");
  EXPECT_NEAR(found.gain, 0.2, 1e-9);
  EXPECT_DOUBLE_EQ(found.planned.value_or(0), 0.1);
  EXPECT_THAT(found.what, HasSubstr("400 ms a step (planned: 100 ms)"));
}

TEST(SlownessTest, SavesFollowYoungsRule) {
  spec::Job job;
  job.checkpoint.every_epochs = 0.1;
  const RunLog log = log_of({R"("event":"start")", step(1, R"("seconds":10,"compute":5,"save":5)"),
                             R"("event":"save","step":5,"seconds":2,"stall":2.5,"processor":0.1)",
                             R"("event":"save","step":10,"seconds":2,"stall":2.5,"processor":0.1)"});
  const Finding found = explain_slowness(log, {.job = &job}).findings.at(0);
  EXPECT_EQ(found.part, "save");
  EXPECT_DOUBLE_EQ(found.measured, 2.5);
  EXPECT_EQ(found.setting, "checkpoint.every_epochs=0");
  EXPECT_NEAR(found.gain, 0.49, 0.01);  // a stall of 2.5 s in sqrt(2 * 2.6 s * 8 h) = 387 s
  EXPECT_THAT(found.advice, HasSubstr("Young's rule"));
}

TEST(SlownessTest, EvaluationsGetRarerUntilTheyAreATwentieth) {
  spec::Job job;
  job.evaluation.every_steps = 5;
  const RunLog log = log_of({R"("event":"start")", step(1, R"("seconds":10,"compute":10)"),
                             R"("event":"evaluate","step":5,"split":"validate","seconds":5)",
                             R"("event":"evaluate","step":10,"split":"validate","seconds":5)"});
  const Finding found = explain_slowness(log, {.job = &job}).findings.at(0);
  EXPECT_EQ(found.part, "evaluation");
  EXPECT_DOUBLE_EQ(found.measured, 5);
  EXPECT_EQ(found.setting, "evaluation.every_steps=95");  // 19 times as rare: 10 s of 200 s
  EXPECT_NEAR(found.gain, 0.5 * 18 / 19, 1e-9);
  const RunLog shorter =
      log_of({R"("event":"start","total_steps":20,"steps_per_epoch":20)", step(1, R"("seconds":10,"compute":10)"),
              R"("event":"evaluate","step":10,"split":"validate","seconds":10)"});
  EXPECT_EQ(explain_slowness(shorter, {.job = &job}).findings.at(0).setting, "evaluation.every_steps=20");
}

TEST(SlownessTest, AFasterOptionOfThePlanOnTheSameDevicesIsTheAdvice) {
  spec::Plan plan;
  plan.options.resize(3);
  for (auto& option : plan.options) {
    option.machine = "here";
    option.gpu = "h200";
    option.gpus = 1;
    option.feasible = true;
  }
  plan.options[0].step_seconds = spec::PlanStep{0.5, 0.4, 0.6};
  plan.options[0].total_seconds = 100;
  plan.options[1].total_seconds = 50;
  plan.options[1].set = {"training.precision=amp"};
  plan.options[2].total_seconds = 10;
  plan.options[2].set = {"training.zero=1"};
  plan.options[2].gpus = 8;  // other devices
  const RunLog log = log_of({R"("event":"start")", step(1, R"("seconds":10,"compute":10)"),
                             R"("event":"promise","step":10,"option":0,"rows":[],"why":["conv: 700 ms a step"])"});
  const Slowness slowness = explain_slowness(log, {.plan = &plan, .option = &plan.options[0]});
  ASSERT_EQ(slowness.findings.size(), 1U);
  const Finding& found = slowness.findings[0];
  EXPECT_EQ(found.part, "compute");
  EXPECT_DOUBLE_EQ(found.planned.value_or(0), 0.5);
  EXPECT_THAT(found.what, HasSubstr("more than planned: conv: 700 ms a step"));
  EXPECT_EQ(found.setting, "training.precision=amp");
  EXPECT_NEAR(found.gain, 0.5, 1e-9);
  EXPECT_EQ(to_json(slowness).at("findings").items()[0].at("setting").as_string(), "training.precision=amp");
}

}  // namespace
}  // namespace lockstep::watching
