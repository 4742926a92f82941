// SPDX-License-Identifier: Apache-2.0
// lockstep/verbs/plan/run_rules_test.cpp holds it against runs, which need libtorch.
#include "lockstep/forecast/run_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/forecast/invented_device.h"
#include "lockstep/run/feeding.h"

namespace lockstep::forecast {
namespace {

spec::Job small_job() {
  return spec::parse_job(base::parse_json(R"({"name": "a", "data": {"train": "synthetic", "samples": 4096,
    "image_size": 64, "threads": 1}, "model": {"name": "smallcnn", "classes": 4},
    "training": {"global_batch": 256, "epochs": 2}})",
                                          "job.json"));
}

MachineOption gpus(int64_t gpus) {
  MachineOption machine_option;
  machine_option.gpu = invented_gpu();
  machine_option.gpus = gpus;
  return machine_option;
}

NetworkSays no_network() {
  return {.features = {}, .check_norms = [](const spec::Job&, int64_t, int64_t) {}};
}

TEST(RunRulesTest, AnEvaluationPassIsATrainingPassOnAGpu) {
  spec::Job job = small_job();
  EXPECT_EQ(RunRules(job, 4096, 0, no_network()).evaluation_rows(gpus(4), {"fp32"}), 0);  // it has none
  job.data.validate = "synthetic";
  const RunRules rules(job, 4096, 1000, no_network());
  EXPECT_EQ(rules.evaluation_rows(gpus(4), {"fp32"}), 64);
  EXPECT_EQ(rules.evaluation_rows(gpus(4), {"fp32", {}, 16}), 16);
  MachineOption processors;
  processors.gpus = 0;
  EXPECT_EQ(rules.evaluation_rows(processors, {"fp32"}), 32);
  EXPECT_EQ(RunRules(job, 4096, 20, no_network()).evaluation_rows(gpus(4), {"fp32"}), 20);
}

TEST(RunRulesTest, AFedRankPinsEverySlotOfTheFeeder) {
  spec::Job job = small_job();
  EXPECT_EQ(RunRules(job, 4096, 0, no_network()).requirements(gpus(1), {"fp32"}).pinned_bytes, 0);
  job.data.pixels = spec::Pixels::uint8;
  const int64_t pinned = RunRules(job, 4096, 0, no_network()).requirements(gpus(1), {"fp32"}).pinned_bytes;
  EXPECT_GE(pinned, run::kFeederSlots * 256 * 64 * 64 * 3);
  EXPECT_LT(pinned, (run::kFeederSlots + 1) * 256 * 64 * 64 * 3);
}

TEST(RunRulesTest, WhatTheNetworkRefusesIsARefusalOfThatPlace) {
  NetworkSays network = no_network();
  network.check_norms = [](const spec::Job&, int64_t, int64_t ranks) {
    if (ranks > 2) throw base::Error(base::Blame::user, "one value a channel");
  };
  RunRules rules(small_job(), 4096, 0, network);
  EXPECT_FALSE(rules.requirements(gpus(2), {"fp32"}).refusal);
  ASSERT_TRUE(rules.requirements(gpus(4), {"fp32"}).refusal);
  EXPECT_STREQ(rules.requirements(gpus(4), {"fp32"}).refusal->what(), "one value a channel");
}

TEST(RunRulesTest, TheLeversAreThoseOfTheJob) {
  const spec::Job job = with_levers(small_job(), {"bf16", {"all"}, 8, 2});
  EXPECT_EQ(job.training.precision, spec::Precision::bf16);
  EXPECT_EQ(job.training.recompute, std::vector<std::string>{"all"});
  EXPECT_EQ(job.training.micro_batch, 8);
  EXPECT_EQ(job.training.zero, 2);
}

}  // namespace
}  // namespace lockstep::forecast
