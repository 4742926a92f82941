// SPDX-License-Identifier: Apache-2.0
// What planning::RecordedZoo makes of a few recordings, beside what is traced.
#include <gtest/gtest.h>

#include "lockstep/base/text.h"
#include "lockstep/planning/evaluation_part.h"
#include "lockstep/planning/recorded_zoo.h"
#include "lockstep/planning/traced_job.h"
#include "lockstep/verbs/plan/simulated_tracer.h"

namespace lockstep::verbs::plan {
namespace {

using planning::SimulatedRank;
using planning::ZooKey;

spec::Job recorded_job(const std::vector<std::string>& sets = {}) {
  return spec::parse_job(base::parse_json(R"({
    "name": "small", "data": {"train": "synthetic", "samples": 1000, "image_size": 32},
    "model": {"name": "smallcnn", "classes": 10}, "training": {"global_batch": 64, "epochs": 2}})",
                                          "job.json"),
                         sets);
}

SimulatedRank rank_of(int64_t batch, int64_t passes, int64_t ranks, int64_t evaluated) {
  SimulatedRank rank;
  rank.attention = forecast::Attention::flash;
  rank.ranks = ranks;
  rank.rows = batch * passes;
  rank.evaluation_rows = evaluated;
  return rank;
}

spec::Job of_batch(spec::Job job, int64_t batch, int64_t passes, int64_t ranks) {
  job.training.micro_batch = batch;
  job.training.global_batch = batch * passes * ranks;
  return job;
}

TEST(RecordedStepsTest, TwoBatchesGiveEveryOther) {
  SimulatedTracer tracer;
  for (const int64_t ranks : {1, 2}) {
    for (const int64_t passes : {1, 2}) {
      const auto traced = [&](int64_t batch, int64_t evaluated) {
        return tracer.step(of_batch(recorded_job(), batch, passes, ranks), rank_of(batch, passes, ranks, evaluated));
      };
      const planning::ZooEntry entry{planning::traced_job(recorded_job()),
                                     {.precision = "fp32", .ranks = ranks, .passes = passes},
                                     {traced(16, 16), traced(48, 48)}};
      planning::RecordedZoo zoo(planning::parse_zoo(planning::print_zoo({entry}), "small.zoo"));
      for (const int64_t batch : {2, 40}) {
        for (const int64_t evaluated : {int64_t{0}, batch, int64_t{5}}) {
          const auto found =
              zoo.step(of_batch(recorded_job(), batch, passes, ranks), rank_of(batch, passes, ranks, evaluated));
          EXPECT_EQ(found, traced(batch, evaluated)) << ranks << "/" << passes << "/" << batch << "/" << evaluated;
        }
      }
    }
  }
}

// planning::traced_job() holds for the step itself.
TEST(RecordedStepsTest, WhatATracedJobForgetsChangesNoOperator) {
  SimulatedTracer tracer;
  const auto traced = [&](const std::vector<std::string>& sets) {
    return tracer.step(of_batch(recorded_job(sets), 8, 1, 1), rank_of(8, 1, 1, 8));
  };
  const std::vector<std::string> recipe{"training.label_smoothing=0.1", "training.ema_decay=0.999"};
  const auto plain = traced(recipe);
  for (const char* set :
       {"name=b", "data.samples=7", "data.augment=rand", "data.flip=false", "training.optimizer.lr=0.5",
        "training.optimizer.nesterov=true", "training.optimizer.momentum=0.5", "training.optimizer.weight_decay=0.01",
        "training.label_smoothing=0.2", "training.ema_decay=0.9", "training.schedule.warmup_epochs=1",
        "training.seed=7", "training.spike_factor=4", "evaluation.every_epochs=2", "checkpoint.keep=5",
        "limits.walltime=48:00:00"}) {
    std::vector<std::string> sets = recipe;
    sets.emplace_back(set);
    EXPECT_EQ(traced(sets), plain) << set;
  }
}

}  // namespace
}  // namespace lockstep::verbs::plan
