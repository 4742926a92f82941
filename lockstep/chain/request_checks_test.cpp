// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/request_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/chain/small_request.h"

namespace lockstep::chain {
namespace {

using testing::HasSubstr;

std::string run_complaint(const SubmitRequest& request) {
  try {
    check_run(request);
  } catch (const base::Error& error) {
    return error.message();
  }
  return "";
}

TEST(RequestChecksTest, RefusesTheRunFolderOfAnotherJob) {
  const base::TemporaryFolder folder;
  SubmitRequest request = request_on("leonardo");
  request.run = folder.path();
  spec::Job before = request.job;
  before.limits.walltime = 60;  // how it is run may change
  base::write_json(folder.path() / "job.json", spec::to_json(before));
  EXPECT_EQ(run_complaint(request), "");
  before.training.seed = 7;
  base::write_json(folder.path() / "job.json", spec::to_json(before));
  EXPECT_THAT(run_complaint(request), HasSubstr("is the run of another job: training.seed was 7, now 1"));
  before = request.job;
  before.model.name = "resnet50";
  base::write_json(folder.path() / "job.json", spec::to_json(before));
  EXPECT_THAT(run_complaint(request), HasSubstr("model.name was \"resnet50\", now \"resnet18\""));
}

TEST(RequestChecksTest, RefusesWhateverTrainingWouldTakeForAnotherJob) {
  const base::TemporaryFolder folder;
  SubmitRequest request = request_on("leonardo");
  request.run = folder.path();
  spec::Job before = request.job;  // as a run writes it down: what was left to the data is settled
  before.data.order = spec::SampleOrder::full;
  before.model.classes = 4;
  base::write_json(folder.path() / "job.json", spec::to_json(before));
  request.job.model.classes = 0;
  EXPECT_EQ(run_complaint(request), "");
  const auto refused = [&](const auto& change) {
    SubmitRequest other = request;
    change(other.job);
    return run_complaint(other);
  };
  EXPECT_THAT(refused([](spec::Job& job) { job.training.ema_decay = 0.9; }), HasSubstr("training.ema_decay was 0"));
  EXPECT_THAT(refused([](spec::Job& job) { job.training.virtual_ranks = 4; }), HasSubstr("training.virtual_ranks"));
  EXPECT_THAT(refused([](spec::Job& job) { job.data.image_size = 32; }), HasSubstr("data.image_size"));
  EXPECT_THAT(refused([](spec::Job& job) { job.data.order = spec::SampleOrder::windows; }), HasSubstr("data.order"));
  EXPECT_THAT(refused([](spec::Job& job) { job.name = "other"; }), HasSubstr("name was 'pets', now 'other'"));
}

TEST(RequestChecksTest, AMachineWithGpusTrainsOnThem) {
  SubmitRequest request = request_on("leonardo");
  EXPECT_EQ(checked_device(request, shipped_catalogue()), "cuda");
  EXPECT_EQ(choose_ranks_per_node(request, "cuda"), 4);
  request.device = "cpu";
  EXPECT_EQ(checked_device(request, shipped_catalogue()), "cpu");
  request.device = "tpu";
  EXPECT_THROW(checked_device(request, shipped_catalogue()), base::Error);
}

TEST(RequestChecksTest, TheShorterOfTwoWalltimesHolds) {
  SubmitRequest request = request_on("leonardo");
  EXPECT_EQ(walltime_limit(request), 24 * 3600);
  request.job.limits.walltime = 3600;
  EXPECT_EQ(walltime_limit(request), 3600);
  request.walltime = 7200;  // what is asked for by hand
  EXPECT_EQ(walltime_limit(request), 7200);
}

}  // namespace
}  // namespace lockstep::chain
