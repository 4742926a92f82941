// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/run_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/group.h"
#include "lockstep/planning/machine_options.h"
#include "lockstep/planning/plan.h"
#include "lockstep/trace/trace.h"
#include "lockstep/training/features.h"
#include "lockstep/training/train.h"
#include "lockstep/verbs/plan/simulated_tracer.h"

namespace lockstep::verbs::plan {
namespace {

using testing::HasSubstr;

spec::Job job_of(const std::string& data, const std::string& model, const std::string& training) {
  return spec::parse_job(base::parse_json(base::text(R"({"name": "job", "data": {"train": "synthetic", "threads": 1, )",
                                                     data, R"(}, "model": {"classes": 4, )", model,
                                                     R"(}, "training": {"threads": 1, "steps": 2, )", training, "}}"),
                                          "job.json"));
}

// Whether ranks on the CPU come to the first step; what they say instead.
std::string refusal_of_train(const spec::Job& job, int64_t ranks) {
  const base::TemporaryFolder folder;
  try {
    comm::run_thread_ranks(ranks, [&](comm::Group& group) {
      training::TrainOptions options;
      options.run = folder.path() / "run";
      options.stop = [] { return "one step is enough"; };
      training::train(job, options, group);
    });
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user) << error.what();
    return error.what();
  }
  return "";
}

enum class Search { none, levers };

planning::Plan plan_on(const spec::Job& job, int64_t gpus, const std::string& gpu = "h200",
                       Search search = Search::none) {
  const auto catalogue = catalogue::load_embedded();
  planning::PlanRequest request;
  request.job = job;
  request.lengths = planning::find_lengths(job, 0, 0);
  request.machine_options =
      planning::find_machine_options({.on = {gpu}, .gpus = {gpus}, .here = [] { return planning::Here{}; }}, catalogue);
  request.search = search == Search::levers;
  SimulatedTracer tracer;
  request.tracer = &tracer;
  return planning::make_plan(request, catalogue, forecast::load_calibration());
}

struct Case {
  std::string what;
  spec::Job job;
  int64_t ranks = 1;
};

const std::vector<Case>& cases() {
  const std::string tiny = R"("samples": 64, "image_size": 16)";
  const std::string small = R"("name": "smallcnn", "width": 4)";
  static const std::vector<Case> all{
      {"two batches are more than data.memory", job_of(R"("samples": 4096, "image_size": 224, "memory": "1GiB")", small,
                                                       R"("global_batch": 1024, "micro_batch": 8)")},
      {"on two ranks they are not",
       job_of(R"("samples": 64, "image_size": 64, "memory": "6MiB")", small, R"("global_batch": 64)"), 2},
      {"a slice of one sample", job_of(R"("samples": 64, "image_size": 32)", R"("name": "resnet18")",
                                       R"("global_batch": 8, "virtual_ranks": 8)")},
      {"a last batch of one sample",
       job_of(R"("samples": 65, "image_size": 32)", R"("name": "resnet18")", R"("global_batch": 8)")},
      {"slices of two", job_of(tiny, small, R"("global_batch": 16, "virtual_ranks": 8)")},
      {"ghosts larger than a share",
       job_of(tiny, small, R"("global_batch": 64, "batch_norm": "ghost", "ghost_batch": 32)"), 4},
      {"ghosts as large as a share",
       job_of(tiny, small, R"("global_batch": 64, "batch_norm": "ghost", "ghost_batch": 32)"), 2},
      {"a share with one sample left over for a ghost",
       job_of(tiny, small, R"("global_batch": 34, "batch_norm": "ghost", "ghost_batch": 16)"), 2},
      {"validation in a quarter of data.memory",
       job_of(R"("samples": 64, "image_size": 64, "memory": "7MiB", "validate": "synthetic")", small,
              R"("global_batch": 16)")},
      {"plain", job_of(tiny, small, R"("global_batch": 8)")},
  };
  return all;
}

TEST(RunRulesTest, WhatThePlanCallsFeasibleIsWhatTrainStarts) {
  int64_t refused = 0;
  for (const Case& what : cases()) {
    const planning::Plan plan = plan_on(what.job, what.ranks);  // first: no real step before the first simulated one
    const std::string refusal = refusal_of_train(what.job, what.ranks);
    ASSERT_EQ(plan.options.size(), 1U);
    const forecast::Option& option = plan.options[0];
    EXPECT_TRUE(option.trial.fits) << what.what;
    EXPECT_EQ(option.feasible(), refusal.empty()) << what.what << ": " << refusal;
    if (refusal.empty()) continue;
    ++refused;
    ASSERT_TRUE(option.trial.refusal) << what.what;
    EXPECT_EQ(option.trial.refusal->what(), refusal) << what.what;
    EXPECT_THAT(base::join(option.why, "; "), HasSubstr("train refuses it: " + refusal));
  }
  EXPECT_EQ(refused, 6);
}

// "No lever makes it fit" was said of a batch that only the loaders had no room for.
TEST(RunRulesTest, TheSearchGivesTheLoadersTheMemoryThatTrainAsksFor) {
  const spec::Job job =
      job_of(R"("samples": 65536, "image_size": 224)", R"("name": "smallcnn", "width": 4)", R"("global_batch": 32768)");
  const planning::Plan plan = plan_on(job, 8, "h100", Search::levers);
  ASSERT_EQ(plan.options.size(), 2U);
  EXPECT_FALSE(plan.options[0].feasible());
  const forecast::Option& found = plan.options[1];
  EXPECT_TRUE(found.feasible());
  EXPECT_THAT(found.changes, testing::Contains(testing::StartsWith("data.memory=")));
  EXPECT_TRUE(plan_on(planning::changed_job(plan, found), 8, "h100").options[0].feasible());
}

// "Needs 16.8 GB at least" was said where a plan with 6.7 GB exists.
TEST(RunRulesTest, WhatIsNeededAtLeastIsWithEveryLeverAtItsEnd) {
  const spec::Job job =
      job_of(R"("samples": 4096, "image_size": 224)", R"("name": "resnet50")", R"("global_batch": 512)");
  const planning::Plan small = plan_on(job, 1, "1GB", Search::levers);
  ASSERT_TRUE(small.least);
  EXPECT_LT(small.least->bytes, small.options[0].trial.memory.total / 10);
  EXPECT_THAT(small.least->with.changes, testing::Contains("training.micro_batch=1"));
  // The driver keeps 1.5 % of what the maker states.
  const double gibibytes = static_cast<double>(small.least->bytes) / 0x1p30;
  const planning::Plan enough =
      plan_on(planning::changed_job(small, small.least->with), 1, base::text(base::fixed(1.03 * gibibytes, 3), "GiB"));
  EXPECT_TRUE(enough.options[0].trial.fits);
  EXPECT_EQ(enough.options[0].trial.memory.total, small.least->bytes);
  EXPECT_FALSE(plan_on(job, 1, "8GB", Search::levers).least) << "it fits there";
}

TEST(RunRulesTest, TheLoadersHoldWholeSharesWhateverTheMicroBatch) {
  spec::Job job = job_of(R"("samples": 4096, "image_size": 64)", R"("name": "smallcnn")", R"("global_batch": 1024)");
  const auto whole = plan_on(job, 2).options[0].host;
  job.training.micro_batch = 8;
  EXPECT_EQ(plan_on(job, 2).options[0].host, whole);
  EXPECT_GE(whole.loader, 5 * 1024 * 64 * 64 * 3 * 4);  // four batches in flight and one in use, over both ranks
  job.data.validate = "synthetic";
  EXPECT_GT(plan_on(job, 2).options[0].host.loader, whole.loader);
}

TEST(RunRulesTest, CountsCachedFeaturesOnEveryRankOfANode) {
  spec::Job job = job_of(R"("samples": 1000, "image_size": 64)", R"("name": "smallcnn")", R"("global_batch": 64)");
  job.data.validate = "synthetic";
  job.training.phases = {{.epochs = 1, .train_from = "head", .cache_features = true}, spec::Phase()};
  job.training.steps = 0;
  const int64_t features = plan_on(job, 4).options[0].host.features;
  const model::Network network = model::make_network(job.model, 64, 1);
  const int64_t row = training::feature_row_bytes(network, network.index_of("head"), job, at::kCPU);
  EXPECT_EQ(features, 4 * 2000 * row);
}

TEST(RunRulesTest, TellsOfFeaturesThatANodeCannotKeep) {
  spec::Job job = job_of(R"("samples": 1281167, "image_size": 224)", R"("name": "resnet18")", R"("global_batch": 64)");
  job.training.phases = {{.epochs = 1, .train_from = "layer4.0", .cache_features = true}};
  SimulatedTracer tracer;
  forecast::RunRules rules(job, 1281167, 0, {tracer.features(job, 1281167), tracer.norm_check()});
  forecast::MachineOption machine_option{
      .name = "node", .gpu = catalogue::load_embedded().gpu("a100-40"), .gpus = 4, .per_node = 4};
  machine_option.machine.memory_per_node = int64_t{256} << 30;
  const auto requirements = rules.requirements(machine_option, {.precision = "fp32"});
  ASSERT_TRUE(requirements.refusal);
  EXPECT_THAT(requirements.refusal->what(), HasSubstr("before block 'layer4"));
}

// 256 samples are one batch of 256: seven of eight ranks wait for the one that has it.
TEST(RunRulesTest, TheBusiestRankOfAnEvaluationCounts) {
  spec::Job job = job_of(R"("samples": 256, "image_size": 64)", R"("name": "smallcnn")", R"("global_batch": 256)");
  job.data.validate = "synthetic";
  job.evaluation.batch = 256;
  const double one = plan_on(job, 1).options[0].pace.evaluation_sample;
  EXPECT_NEAR(plan_on(job, 8).options[0].pace.evaluation_sample, one, 1e-3 * one);
  job.evaluation.batch = 32;
  const double cut = plan_on(job, 1).options[0].pace.evaluation_sample;
  EXPECT_NEAR(plan_on(job, 8).options[0].pace.evaluation_sample, cut / 8, 1e-3 * cut);
}

int64_t bytes_on_the_network(const forecast::Recording& recording) {
  int64_t bytes = 0;
  for (const auto& event : recording.events) {
    if (event.kind == forecast::EventKind::collective) bytes += event.bytes;
  }
  return bytes;
}

// Every rank's statistics go to every other one.
TEST(RunRulesTest, BatchNormInStepSendsWhatItSendsOnThatManyRanks) {
  spec::Job job = job_of(R"("samples": 256, "image_size": 32)", R"("name": "smallcnn")",
                         R"("global_batch": 64, "batch_norm": "sync")");
  const auto traced = [&](int64_t ranks) {
    return bytes_on_the_network(trace::trace_step(job, {.ranks = ranks, .rows = 64 / ranks}));
  };
  EXPECT_EQ(bytes_on_the_network(*plan_on(job, 8).recording), traced(8));
  EXPECT_NE(traced(8), traced(2));
}

}  // namespace
}  // namespace lockstep::verbs::plan
