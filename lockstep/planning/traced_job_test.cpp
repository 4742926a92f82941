// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/traced_job.h"

#include <gtest/gtest.h>

#include "lockstep/base/json.h"

namespace lockstep::planning {
namespace {

spec::Job small_job_with(const std::vector<std::string>& sets) {
  return spec::parse_job(base::parse_json(R"({"name": "a", "data": {"train": "synthetic", "samples": 9},
                                              "model": {"name": "resnet50", "classes": 10},
                                              "training": {"global_batch": 8, "epochs": 2}})",
                                          "job.json"),
                         sets);
}

TEST(TracedJobTest, ForgetsWhatChangesNoOperator) {
  const spec::Job plain = traced_job(small_job_with({}));
  for (const char* set :
       {"name=b", "data.train=elsewhere", "data.samples=7", "data.augment=rand", "training.global_batch=512",
        "training.micro_batch=4", "training.precision=bf16", "training.epochs=90", "training.optimizer.lr=0.5",
        "training.optimizer.nesterov=true", "training.optimizer.weight_decay=0.01", "training.schedule.warmup_epochs=1",
        "training.seed=7", "evaluation.every_epochs=2", "checkpoint.keep=5", "limits.walltime=48:00:00"}) {
    EXPECT_EQ(traced_job(small_job_with({set})), plain) << set;
  }
}

TEST(TracedJobTest, KeepsWhatChangesOperators) {
  const spec::Job plain = traced_job(small_job_with({}));
  for (const char* set : {"model.name=resnet18", "model.classes=11", "model.layout=contiguous", "data.image_size=192",
                          "data.pixels=uint8", "training.optimizer.name=adamw", "training.optimizer.momentum=0",
                          "training.optimizer.weight_decay=0", "training.kernels=reference", "training.clip_norm=1",
                          "training.label_smoothing=0.1", "training.ema_decay=0.99", "training.virtual_ranks=4",
                          "evaluation.views=flip"}) {
    EXPECT_NE(traced_job(small_job_with({set})), plain) << set;
  }
}

TEST(TracedJobTest, IsItsOwnTracedJob) {
  const spec::Job once = traced_job(small_job_with({"training.ema_decay=0.9", "training.label_smoothing=0.2"}));
  EXPECT_EQ(traced_job(once), once);
}

}  // namespace
}  // namespace lockstep::planning
