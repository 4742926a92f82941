// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/recorded_zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/forecast/invented_step.h"
#include "lockstep/planning/traced_job.h"

namespace lockstep::planning {
namespace {

using testing::HasSubstr;

spec::Job job_with(const std::vector<std::string>& sets = {}) {
  return spec::parse_job(base::parse_json(R"({"name": "a", "data": {"train": "synthetic", "samples": 9},
                                              "model": {"name": "resnet50", "classes": 10},
                                              "training": {"global_batch": 8, "epochs": 2}})",
                                          "job.json"),
                         sets);
}

// The invented step with an operator that evaluates.
forecast::Recording recorded(int64_t batch) {
  forecast::Recording made = forecast::invented_step({.precision = "fp32", .micro_batch = batch});
  made.operators.push_back({.name = "aten::mm", .phase = forecast::Phase::evaluate});
  const auto end = std::find_if(made.events.begin(), made.events.end(), [](const forecast::Event& event) {
    return event.kind == forecast::EventKind::step_end;
  });
  made.events.insert(end, {.kind = forecast::EventKind::run, .id = 4});
  return made;
}

std::vector<ZooEntry> entries() {
  return {{traced_job(job_with()), {.precision = "fp32"}, {recorded(16), recorded(48)}}};
}

TEST(RecordedZooTest, IsPrintedAndParsed) {
  const auto parsed = parse_zoo(print_zoo(entries()), "a.zoo");
  ASSERT_EQ(parsed.size(), 1u);
  EXPECT_EQ(parsed[0].job, entries()[0].job);
  EXPECT_EQ(parsed[0].key, entries()[0].key);
  EXPECT_EQ(parsed[0].members, entries()[0].members);
  EXPECT_THROW(parse_zoo("", "a.zoo"), base::Error);
  EXPECT_THROW(parse_zoo(print_zoo(entries()).substr(0, print_zoo(entries()).size() - 40), "a.zoo"), base::Error);
}

TEST(RecordedZooTest, AnswersForAnyBatch) {
  RecordedZoo zoo(entries());
  for (const int64_t batch : {1, 16, 20, 48, 700}) {
    SimulatedRank rank;
    rank.rows = batch;
    rank.attention = forecast::Attention::flash;  // of the GPU: the network has none
    EXPECT_EQ(zoo.step(job_with({"training.seed=4"}), rank),
              forecast::invented_step({.precision = "fp32", .micro_batch = batch}))
        << batch;
    rank.evaluation_rows = batch;
    EXPECT_EQ(zoo.step(job_with(), rank), recorded(batch)) << batch;
  }
}

TEST(RecordedZooTest, TakesBlocksInAnyOrder) {
  RecordedZoo zoo({{traced_job(job_with()), {.precision = "fp32", .recompute = {"layer1", "stem"}}, {recorded(16)}}});
  SimulatedRank rank;
  rank.rows = rank.evaluation_rows = 16;
  EXPECT_EQ(zoo.step(job_with({R"(training.recompute=["stem","layer1"])"}), rank), recorded(16));
  EXPECT_THROW(zoo.step(job_with({R"(training.recompute=["stem"])"}), rank), base::Error);
}

void expect_refusal(const spec::Job& job, const SimulatedRank& rank, const std::string& what) {
  RecordedZoo zoo(entries());
  try {
    zoo.step(job, rank);
    FAIL() << what;
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_THAT(error.what(), HasSubstr(what));
    EXPECT_THAT(error.fix(), HasSubstr("lockstep.record"));
  }
}

TEST(RecordedZooTest, SaysWhatIsNotRecorded) {
  SimulatedRank rank;
  rank.rows = 8;
  expect_refusal(job_with({"model.name=resnet18"}), rank, "no recording of 'resnet18' is in this page");
  expect_refusal(job_with({"model.classes=37"}), rank, "differs in: model.classes: 10 -> 37");
  expect_refusal(job_with({"training.precision=bf16"}), rank, "(not with training.precision bf16)");
  rank.ranks = 2;
  expect_refusal(job_with(), rank, "2 ranks");
}

}  // namespace
}  // namespace lockstep::planning
