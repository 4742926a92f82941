// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/promise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::training {
namespace {

using testing::HasSubstr;

spec::Job planned_job() {
  return spec::parse_job(base::parse_json(R"({"name": "a", "data": {"train": "synthetic", "samples": 64},
    "model": {"name": "smallcnn", "classes": 4}, "training": {"global_batch": 8, "epochs": 2}})",
                                          "job.json"));
}

spec::PlanOption option(const std::string& title, int64_t gpus) {
  spec::PlanOption option;
  option.title = title;
  option.gpus = gpus;
  if (gpus > 0) option.gpu = "v100-16";
  return option;
}

// The job as written on a processor and on two GPUs, and with half the micro-batch on two GPUs.
spec::Plan plan() {
  spec::PlanOption here = option("here", 0);
  here.cpu = "xeon";
  here.samples_per_second = 80;
  here.total_seconds = 150;
  here.jobs = 2;
  here.start_up_seconds = 3;
  here.start_up_low_seconds = 2;
  here.start_up_high_seconds = 5;
  here.step_seconds = {.value = 0.1, .low = 0.08, .high = 0.13};
  here.memory.peak_reserved = 1;
  here.memory.total = 700'000'000;
  here.time_by_class = {{"convolution", 0.06}};
  spec::PlanOption small = option("2 x v100, micro-batch 4", 2);
  small.memory.peak_reserved = 5'000'000'000;
  small.memory.total = 6'000'000'000;
  small.job = planned_job();
  small.job->training.micro_batch = 4;
  spec::Plan plan;
  plan.job = planned_job();
  plan.options = {here, option("2 x v100", 2), small};
  return plan;
}

Promise find(const spec::Plan& plan, const spec::Job& job, const Standing& standing) {
  return find_promise(plan, "plan.json", job, standing);
}

std::string complaint(const spec::Job& job, const Standing& standing) {
  try {
    find(plan(), job, standing);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    return base::text(error.what(), " | ", error.fix());
  }
  return "accepted";
}

TEST(PromiseTest, IsThatOfTheOptionForThisMachine) {
  const Promise promise = find(plan(), planned_job(), {"cpu", "Some Xeon", "xeon", 1});
  EXPECT_EQ(promise.option, 0);
  EXPECT_EQ(promise.step_high, 0.13);
  EXPECT_EQ(promise.samples_per_second, 80);
  EXPECT_EQ(promise.memory_bytes, 7e8);   // the whole process
  EXPECT_EQ(promise.total_seconds, 150);  // as the plan counts it
  EXPECT_EQ(promise.jobs, 2);
  EXPECT_EQ(promise.start_up_low, 2);
  EXPECT_EQ(promise.start_up_high, 5);
  EXPECT_FALSE(promise.epoch_seconds);
  EXPECT_EQ(promise.by_class.at("convolution"), 0.06);
  EXPECT_EQ(find(plan(), planned_job(), {"cuda", "Tesla V100", "v100-16", 2}).option, 1);
}

TEST(PromiseTest, IsThatOfTheOptionWithTheseLevers) {
  spec::Job job = planned_job();
  job.training.micro_batch = 4;
  const Promise promise = find(plan(), job, {"cuda", "Tesla V100", "v100-16", 2});
  EXPECT_EQ(promise.option, 2);
  EXPECT_EQ(promise.memory_bytes, 5e9);  // what the allocator reserves
}

TEST(PromiseTest, NamesTheFirstKeyOfAnotherJob) {
  spec::Job job = planned_job();
  job.training.optimizer.lr = 0.5;
  EXPECT_THAT(complaint(job, {"cpu", "Some Xeon", "xeon", 1}),
              HasSubstr("plan.json is the plan of another job: training.optimizer.lr is 0.1 there and 0.5 here"));
}

TEST(PromiseTest, AKeyOfAForeignPlanCanBePasted) {
  spec::Plan foreign = plan();
  foreign.job->data.train = "set; $(id)'";
  try {
    find(foreign, planned_job(), {"cpu", "Some Xeon", "xeon", 1});
    FAIL() << "it is the plan of another job";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.fix(), testing::EndsWith(R"(--set 'data.train="set; $(id)'\''"')"));
  }
}

TEST(PromiseTest, HoldsForWhicheverOrderTheStorageLedTo) {
  spec::Job job = planned_job();
  EXPECT_EQ(job.data.order, spec::SampleOrder::by_storage);
  job.data.order = spec::SampleOrder::windows;
  EXPECT_EQ(find(plan(), job, {"cpu", "Some Xeon", "xeon", 1}).option, 0);
}

TEST(PromiseTest, AnOrderThatWasPlannedIsHeldTo) {
  spec::Job job = planned_job();
  job.data.order = spec::SampleOrder::full;
  spec::Plan full = plan();
  full.job = job;
  EXPECT_EQ(find(full, job, {"cpu", "Some Xeon", "xeon", 1}).option, 0);
  job.data.order = spec::SampleOrder::windows;
  EXPECT_THROW(find(full, job, {"cpu", "Some Xeon", "xeon", 1}), base::Error);
}

TEST(PromiseTest, SaysWhatMachinesItHasInstead) {
  EXPECT_THAT(complaint(planned_job(), {"cuda", "Tesla V100", "v100-16", 4}),
              HasSubstr("no option for 4 ranks on cuda (Tesla V100); it has: here; 2 x v100"));
  EXPECT_THAT(complaint(planned_job(), {"cpu", "Some Epyc", "epyc", 1}), HasSubstr("1 rank on cpu (Some Epyc)"));
  EXPECT_THAT(complaint(planned_job(), {"cuda", "Odd GPU", "", 2}), HasSubstr("which the catalogue does not know"));
}

TEST(PromiseTest, RefusesThePlanOfARecordingAndOneWithoutOptions) {
  spec::Plan recorded = plan();
  recorded.job.reset();
  EXPECT_THROW(find(recorded, planned_job(), {}), base::Error);
  spec::Plan empty = plan();
  empty.options.clear();
  EXPECT_THROW(find(empty, planned_job(), {"cpu", "Some Xeon", "xeon", 1}), base::Error);
}

TEST(PromiseTest, AProcessorHasAName) {
  EXPECT_FALSE(standing_here("cpu", 0, 1).name.empty());
}

}  // namespace
}  // namespace lockstep::training
