// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/forecast/invented_device.h"
#include "lockstep/measure/scaling_report.h"

namespace lockstep::measure {
namespace {

using base::Json;
using ::testing::HasSubstr;

spec::Job job_to_scale() {
  Json document = Json::object();
  document["name"] = "shapes";
  document["data"]["train"] = "synthetic";
  document["data"]["samples"] = 64;
  document["model"]["name"] = "resnet18";
  document["model"]["classes"] = 10;
  document["training"]["global_batch"] = 16;
  document["training"]["steps"] = 40;
  return spec::parse_job(document, {});
}

ScalingBench bench_of(ScalingMode mode) {
  ScalingBench bench;
  bench.job = job_to_scale();
  bench.job_file = "job.json";
  bench.set = {"model.classes=10"};
  bench.ranks = {1, 2, 4};
  bench.mode = mode;
  bench.threads = 3;
  return bench;
}

ScalingPoint point_of(int64_t ranks, int64_t batch, const std::vector<double>& rates) {
  ScalingPoint point{.ranks = ranks, .batch = batch, .gradient_bytes = 40e6, .alone_seconds = .04, .runs = {}};
  for (const double rate : rates) {
    point.runs.push_back({.hours = .5,
                          .steps = 40,
                          .rate = rate,
                          .step_seconds = static_cast<double>(batch) / rate,
                          .exposed_seconds = .01});
  }
  return point;
}

TEST(ScalingTest, WeakMultipliesTheBatchAndDividesTheSteps) {
  EXPECT_THAT(point_overrides(bench_of(ScalingMode::weak), 4),
              ::testing::ElementsAre("model.classes=10", "training.global_batch=64", "training.steps=10",
                                     "training.threads=3"));
  EXPECT_THAT(point_overrides(bench_of(ScalingMode::strong), 4),
              ::testing::ElementsAre("model.classes=10", "training.global_batch=16", "training.steps=40",
                                     "training.threads=3"));
}

TEST(ScalingTest, TheFirstFifthOfTheStepsWarmsUp) {
  run::History history;
  for (int64_t step = 1; step <= 10; ++step) {
    Json event = Json::object();
    event["event"] = "step";
    event["step"] = step;
    event["samples"] = 8;
    event["seconds"] = step <= 2 ? 9.0 : .5;
    event["communication"] = step <= 2 ? 5.0 : .1;
    history.events.push_back(event);
  }
  Json result = Json::object();
  result["seconds"] = 36.0;
  result["step"] = 10;
  result["headline"] = task::to_json({"top1", .75, true, "top-1 75.00 %"});
  const ScalingRun run = read_scaling_run(history, result);
  EXPECT_DOUBLE_EQ(run.rate, 16);
  EXPECT_DOUBLE_EQ(run.step_seconds, .5);
  EXPECT_NEAR(run.exposed_seconds, .1, 1e-12);
  EXPECT_DOUBLE_EQ(run.hours, .01);
  EXPECT_EQ(run.headline.value().value, .75);
}

TEST(ScalingTest, ARunOfOneRecordStillHasARate) {
  run::History history;
  Json event = Json::object();
  event["event"] = "step";
  event["step"] = 10;
  event["steps"] = 10;
  event["samples"] = 80;
  event["seconds"] = 2.0;
  history.events.push_back(event);
  Json result = Json::object();
  result["seconds"] = 3.0;
  result["step"] = 10;
  EXPECT_DOUBLE_EQ(read_scaling_run(history, result).rate, 40);
}

TEST(ScalingTest, EfficiencyHasASpread) {
  const auto base = point_of(1, 16, {10, 10});
  const auto two = point_of(2, 16, {18, 19, 16});
  const Efficiency efficiency = efficiency_of(two, base);
  EXPECT_DOUBLE_EQ(efficiency.value, .9);
  EXPECT_DOUBLE_EQ(efficiency.low, .8);
  EXPECT_DOUBLE_EQ(efficiency.high, .95);
  EXPECT_DOUBLE_EQ(*two.hidden_share(), .75);
  EXPECT_FALSE(base.hidden_share());
}

TEST(ScalingTest, AnInstantLinkPlansIdealScaling) {
  const auto base = point_of(1, 16, {10});
  const forecast::Network link{.ranks = 2, .intra_rate = 1e15, .intra_latency = 1e-12};
  EXPECT_NEAR(*planned_rate(point_of(4, 16, {30}), base, link), 40, .5);
  EXPECT_NEAR(*planned_rate(point_of(4, 64, {30}), base, link), 40, .5);
  auto uneven = point_of(4, 64, {30});  // 64 and 16 samples in turn: 40 a step
  uneven.runs[0].step_seconds = 40. / 30;
  EXPECT_NEAR(*planned_rate(uneven, base, link), 40, .5);
  EXPECT_FALSE(planned_rate(base, base, link));
  EXPECT_FALSE(planned_rate(point_of(4, 16, {30}), base, std::nullopt));
}

TEST(ScalingTest, PointsAreReadAsTheyWereWritten) {
  const base::TemporaryFolder folder;
  auto two = point_of(2, 16, {18, 19});
  two.runs[1].headline = {"top1", .5, true, "top-1 50.00 %"};
  base::write_json(point_file(folder.path(), ScalingMode::weak, 2), to_json(two));
  base::write_json(point_file(folder.path(), ScalingMode::weak, 1), to_json(point_of(1, 8, {10})));
  const auto points = collect_scaling_points(folder.path(), ScalingMode::weak);
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[1], two);
  EXPECT_THROW(collect_scaling_points(folder.path(), ScalingMode::strong), base::Error);
}

ScalingReport report_of() {
  ScalingReport report;
  report.bench = bench_of(ScalingMode::weak);
  report.points = {point_of(1, 16, {10, 10}), point_of(2, 32, {18, 20})};
  report.points[1].runs[1].headline = {"mae", .25, false, "mean absolute error 0.2500"};
  report.link = forecast::Network{.ranks = 2, .intra_rate = 1e9, .intra_latency = 1e-5};
  report.simulated = {16, 1024};
  report.machine = "a machine";
  report.command = "lockstep bench scaling job.json";
  return report;
}

TEST(ScalingReportTest, WhatAnApplicationEmbedsIsAMeasuredTable) {
  const Json document = scaling_table(report_of());
  const advice::Measured measured = advice::parse_measured(base::parse_json(document.dump(), "scaling.json"));
  ASSERT_EQ(measured.tables.size(), 1U);
  EXPECT_EQ(measured.tables[0].rows[1].gpus, 2);
  EXPECT_DOUBLE_EQ(measured.tables[0].rows[1].rate, 19);
  EXPECT_DOUBLE_EQ(measured.tables[0].rows[1].batch, 16);
  const auto& figures = measured.tables[0].figures[1];
  EXPECT_DOUBLE_EQ(figures.efficiency_low.value(), .9);
  EXPECT_DOUBLE_EQ(figures.efficiency_high.value(), 1);
  EXPECT_DOUBLE_EQ(figures.hidden.value(), .75);
  EXPECT_GT(figures.planned_rate.value(), 10);
  EXPECT_EQ(figures.score, "mean absolute error 0.2500");
}

TEST(ScalingReportTest, SaysPlannedAndMeasuredAndDrawsThem) {
  const auto report = report_of();
  const std::string page = scaling_page(report);
  EXPECT_THAT(page, HasSubstr("0.950 +-0.050"));
  EXPECT_THAT(page, HasSubstr("<svg"));
  EXPECT_THAT(scaling_svg(report), HasSubstr("stroke-dasharray=\"6 4\""));  // the plan
  const Json rows = scaling_rows(report);
  EXPECT_EQ(rows.size(), 4U);  // two measured, two simulated
  EXPECT_TRUE(rows.items()[1].contains("planned_samples_per_second"));
  EXPECT_EQ(rows.items()[1].at("mae").as_double(), .25);
  EXPECT_THAT(page, HasSubstr("mean absolute error 0.2500"));
}

TEST(ScalingReportTest, ThePlotReachesToItsHighestPoint) {
  auto report = report_of();
  const auto line_at_one = [](const std::string& svg) {  // where the line beside the label 1.00 stands
    const size_t label = svg.find(">1.00<");
    const size_t y = svg.rfind("y=\"", label) + 3;
    return std::stod(svg.substr(y));
  };
  EXPECT_NEAR(line_at_one(scaling_svg(report)), 20 + 260 * (1 - 1 / 1.1), .1);
  report.points[1] = point_of(2, 32, {32, 64});  // 1.6 and 3.2: one rank was slowed down
  const std::string svg = scaling_svg(report);
  const double top = 1.05 * 3.2;
  EXPECT_NEAR(line_at_one(svg), 20 + 260 * (1 - 1 / top), .1);
  const auto y = [&](double efficiency) { return base::fixed(20 + 260 * (1 - efficiency / top), 1); };
  EXPECT_THAT(svg, HasSubstr(base::text("y1=\"", y(1.6), "\" y2=\"", y(3.2), "\"")));
  EXPECT_THAT(svg, HasSubstr(base::text("cy=\"", y(2.4), "\"")));
  EXPECT_THAT(svg, HasSubstr(">3.00<"));  // lines up there, to read it by
}

TEST(ScalingReportTest, SaysWhenItsRunsAreNotToBeTrusted) {
  auto report = report_of();
  report.points[1] = point_of(2, 32, {18, 19});
  EXPECT_EQ(doubt_of(report), "");
  EXPECT_THAT(scaling_svg(report), testing::Not(HasSubstr("idle machine")));
  report.points[1] = point_of(2, 32, {32, 64});
  const std::string doubt =
      "the runs of 2 ranks differ by 67 %, 2 ranks have an efficiency of 2.40: measure on an idle machine";
  EXPECT_EQ(doubt_of(report), doubt);
  EXPECT_THAT(advice::to_text(scaling_paper(report)), HasSubstr("the runs of 2 ranks differ by 67 %"));
  EXPECT_THAT(scaling_svg(report), HasSubstr(doubt));
  EXPECT_EQ(scaling_table(report).at("notes").items()[1].as_string(), doubt);
  report.points = {point_of(1, 16, {8, 12}), point_of(2, 32, {20, 20})};
  EXPECT_EQ(doubt_of(report), "the runs of 1 rank differ by 40 %: measure on an idle machine");
}

TEST(ScalingReportTest, SimulatedRanksLoseMoreTheMoreTheyAre) {
  const auto simulated = simulate_ranks(report_of());
  ASSERT_EQ(simulated.size(), 2U);
  EXPECT_LT(simulated[1].efficiency, simulated[0].efficiency);
  EXPECT_GT(simulated[1].efficiency, .5);
}

TEST(ScalingTest, GradientsInHalfThePrecisionAreHalfTheBytes) {
  spec::Training training;
  EXPECT_EQ(summed_bytes(training, 1000), 4000);
  training.reduce_precision = spec::ReducePrecision::bf16;
  EXPECT_EQ(summed_bytes(training, 1000), 2000);
  training.zero = 2;  // no all-reduce of the whole gradient
  EXPECT_EQ(summed_bytes(training, 1000), 0);
  training.zero = 1;
  training.phases.emplace_back().train_from = "head";
  EXPECT_EQ(summed_bytes(training, 1000), 0);
  auto two = point_of(2, 16, {18});
  two.gradient_bytes = two.alone_seconds = 0;
  EXPECT_FALSE(two.hidden_share());
  EXPECT_FALSE(planned_rate(two, point_of(1, 16, {10}), forecast::Network{.ranks = 2, .intra_rate = 1e9}));
}

TEST(ScalingTest, PointsOfDifferentThreadsAreNotCompared) {
  const base::TemporaryFolder folder;
  auto one = point_of(1, 16, {10}), two = point_of(2, 16, {18});
  one.threads = 2, two.threads = 1;
  base::write_json(point_file(folder.path(), ScalingMode::strong, 1), to_json(one));
  base::write_json(point_file(folder.path(), ScalingMode::strong, 2), to_json(two));
  try {
    collect_scaling_points(folder.path(), ScalingMode::strong);
    FAIL() << "compared";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("the point of 2 ranks had 1 threads a rank, that of 1 had 2"));
  }
}

TEST(ScalingTest, TheLinkIsKeptForWhoCollects) {
  const base::TemporaryFolder folder;
  EXPECT_FALSE(kept_link(folder.path()));
  keep_link(folder.path(), {.ranks = 2, .intra_rate = 2e9, .intra_latency = 3e-6});
  ASSERT_TRUE(kept_link(folder.path()));
  EXPECT_EQ(kept_link(folder.path())->intra_rate, 2e9);
  EXPECT_EQ(kept_link(folder.path())->intra_latency, 3e-6);
}

TEST(ScalingReportTest, SaysWhatASimulationLacks) {
  auto report = report_of();
  EXPECT_EQ(why_not_simulated(report), "");
  EXPECT_EQ(scaling_rows(report).items()[2].at("mode").as_string(), "weak");
  EXPECT_EQ(scaling_rows(report).items()[2].at("batch").as_int(), 16 * 16);
  report.bench.mode = ScalingMode::strong;
  EXPECT_EQ(scaling_rows(report).items()[2].at("mode").as_string(), "weak");
  report.link.reset();
  EXPECT_THAT(why_not_simulated(report), HasSubstr("--inter-rate"));
  EXPECT_TRUE(simulate_ranks(report).empty());
  report.inter_rate = 1e9;
  EXPECT_EQ(why_not_simulated(report), "");
  report.points.erase(report.points.begin());
  EXPECT_THAT(why_not_simulated(report), HasSubstr("the first point has 2 ranks"));
}

TEST(ScalingReportTest, ARankHasOneGpuWhateverItsThreads) {
  auto report = report_of();
  report.bench.device = "cuda";
  EXPECT_THAT(advice::to_text(scaling_paper(report)), HasSubstr("cuda, 1 GPU a rank"));
  report.bench.device = "cpu";
  EXPECT_THAT(advice::to_text(scaling_paper(report)), HasSubstr("cpu, 3 threads a rank"));
}

TEST(ScalingReportTest, APublishedTableStandsBesideTheModel) {
  advice::MeasuredTable table;
  table.title = "KITTI, mini-batch 5";
  table.rows = {{.gpus = 1, .batch = 5, .rate = 7.93}, {.gpus = 16, .batch = 5, .rate = 122.24}};
  table.network = {.gradient_bytes = 102e6, .per_node = 1, .inter_rate = 10e9, .note = ""};
  const auto rows = beside_rows({table});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_NEAR(rows[0].measured, .963, .001);
  EXPECT_GT(rows[0].overlapped, rows[0].after);
  EXPECT_NEAR(rows[0].after, rows[0].measured, .03);
}

// A step of adds, forward half as many as backward, whose buckets leave as the reducer's do: what a plan plays of its
// trace and what stands beside a table with the same step, gradient and network are one model.
TEST(ScalingReportTest, TheModelBesideATableIsThePlans) {
  constexpr double kGradient = (1 + 3 * 25) << 20;
  const forecast::Network network{.ranks = 8, .nodes = 8, .intra_rate = 5e9, .inter_rate = 5e9};
  forecast::Recording step;
  step.operators = {{.name = "aten::add", .bytes = 1e9}};
  const auto add = [&](int64_t times) {
    for (int64_t i = 0; i < times; ++i) step.events.push_back({.kind = forecast::EventKind::run, .id = 0});
  };
  add(76 / 2);
  int64_t id = 0;
  for (const double bytes : forecast::bucket_bytes(kGradient)) {
    add(static_cast<int64_t>(bytes) >> 20);
    step.events.push_back({.kind = forecast::EventKind::collective, .id = id++, .bytes = static_cast<int64_t>(bytes)});
  }
  for (int64_t i = 0; i < id; ++i) step.events.push_back({.kind = forecast::EventKind::wait, .id = i});
  const forecast::Calibration calibration({forecast::invented_device()});
  const auto planned = [&](const forecast::Network& ranks) {
    return forecast::forecast_time(step, forecast::invented_gpu(), calibration, ranks).step.value;
  };
  forecast::Recording alone = step;
  std::erase_if(alone.events, [](const auto& event) { return event.kind != forecast::EventKind::run; });
  const double one = forecast::forecast_time(alone, forecast::invented_gpu(), calibration).step.value;

  advice::MeasuredTable table;
  table.rows = {{.gpus = 1, .batch = 5, .rate = 5 / one}, {.gpus = 8, .batch = 5, .rate = 30 / one}};
  table.network = {.gradient_bytes = kGradient, .per_node = 1, .inter_rate = 5e9, .note = ""};
  const auto rows = beside_rows({table});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_LT(rows[0].overlapped, .95);
  EXPECT_NEAR(rows[0].overlapped, one / planned(network), 5e-4);
}

TEST(ScalingReportTest, AnArrayRunsOnePointATask) {
  const std::string script =
      array_script(bench_of(ScalingMode::weak), {"job.json", "--ranks", "1,2,4", "--weak", "--array"});
  EXPECT_THAT(script, HasSubstr("#SBATCH --array=0-2"));
  EXPECT_THAT(script, HasSubstr("#PBS -J 0-2\n"));
  EXPECT_THAT(script, HasSubstr("\ncd \"${PBS_O_WORKDIR:-.}\"\n"));
  EXPECT_THAT(script, HasSubstr("set -- 1 2 4\n"));
  EXPECT_THAT(script, HasSubstr("exec lockstep bench scaling job.json --weak --threads 3 --ranks \"$1\""));
  const std::string simulating =
      array_script(bench_of(ScalingMode::weak), {"job.json", "--array", "--simulate=16", "--inter-rate", "1 GB/s"});
  EXPECT_THAT(simulating, HasSubstr("exec lockstep bench scaling job.json --threads 3 --ranks \"$1\""));
  EXPECT_THAT(simulating, HasSubstr("job.json --simulate=16 --inter-rate '1 GB/s' --threads 3 --collect\n"));
  ScalingBench one = bench_of(ScalingMode::weak);
  one.ranks = {2};
  const std::string alone = array_script(one, {"job.json", "--ranks", "2", "--array"});
  EXPECT_THAT(alone, testing::Not(HasSubstr("#PBS -J")));  // PBS takes no array of one
  EXPECT_THAT(alone, HasSubstr("shift \"0\"\n"));
}

}  // namespace
}  // namespace lockstep::measure
