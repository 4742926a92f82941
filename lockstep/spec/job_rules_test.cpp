// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/job_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/spec/small_job.h"

namespace lockstep::spec {
namespace {

using testing::HasSubstr;

TEST(JobRulesTest, SentencesAndImagesHaveNetworksOfTheirOwn) {
  EXPECT_THAT(job_complaint(kSmallJob, {"task=text"}), HasSubstr("task text needs a network that reads"));
  EXPECT_THAT(job_complaint(kSmallJob, {"model.name=hashed_linear"}), HasSubstr("hashed_linear reads sentences"));
  const auto complaint = [](const std::string& set) {
    return job_complaint(kSmallJob, {"task=text", "model.name=hashed_linear", set});
  };
  EXPECT_THAT(complaint("text.shortest=6"), HasSubstr("text.shortest: is 6, more than text.longest, 5"));
  EXPECT_THAT(complaint("evaluation.views=flip"), HasSubstr("a sentence has one view"));
  EXPECT_THAT(complaint(R"(training.phases=[{"epochs": 1, "train_from": "head", "cache_features": true}])"),
              HasSubstr("training.phases[0].cache_features: a sentence is read faster"));
  EXPECT_THAT(complaint("training.mixup=0.2"), HasSubstr("training.mixup: is of task classify"));
  EXPECT_NO_THROW(job_of(kSmallJob, {"task=text", "model.name=hashed_linear", "training.label_smoothing=0.1",
                                     "training.class_balance=1"}));
}

TEST(JobRulesTest, VirtualRanksAreAPowerOfTwoThatFitsTheBatch) {
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 1, \"virtual_ranks\": 6")),
              HasSubstr("training.virtual_ranks: is 6, no power of two\n  fix: use 4 or 8"));
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 1, \"virtual_ranks\": 64")),
              HasSubstr("training.virtual_ranks: is 64, more slices than training.global_batch has samples\n"
                        "  fix: use 32 or fewer"));
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 1, \"virtual_ranks\": 4, \"micro_batch\": 8")),
              HasSubstr("training.micro_batch: with virtual_ranks the slices are the micro-batches"));
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 1, \"virtual_ranks\": 4, \"batch_norm\": \"sync\"")),
              HasSubstr("training.batch_norm: is sync, which would undo the slices of virtual_ranks"));
  EXPECT_THAT(job_complaint(with_training("\"phases\": [{\"train_from\": \"head\", \"cache_features\": true}], "
                                          "\"virtual_ranks\": 4")),
              HasSubstr("training.phases[0].cache_features: the bits of cached features depend on the ranks"));
  EXPECT_EQ(job_of(with_training("\"epochs\": 1, \"virtual_ranks\": 32")).training.threads_per_slice, 1);
}

TEST(JobRulesTest, ClassWeightsAndEarlyStopsNeedSomethingToWorkOn) {
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 1, \"class_balance\": 1"), {"task=regress"}),
              HasSubstr("training.class_balance: is of task classify, this job has task regress"));
  EXPECT_THAT(job_complaint(kSmallJob, {"data.balance=1", "task=regress"}),
              HasSubstr("data.balance: is of tasks classify, ordinal and text, this job has task regress"));
  EXPECT_EQ(job_of(kSmallJob, {"data.balance=1", "task=ordinal"}).data.balance, 1);
  EXPECT_THAT(job_complaint(kSmallJob, {"data.balance=1", "training.class_balance=1"}),
              HasSubstr("training.class_balance: weighs rare classes in the loss, and data.balance draws them"));
  EXPECT_THAT(job_complaint(kSmallJob, {"data.balance=1", "data.order=windows"}),
              HasSubstr("data.order: windows read"));
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 1, \"focal_gamma\": 2"), {"task=regress"}),
              HasSubstr("training.focal_gamma: is of task classify, this job has task regress\n  fix: leave it out"));
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 1, \"class_weights\": {\"cat\": 0}")),
              HasSubstr("training.class_weights: 'cat' weighs 0, not more than 0"));
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 1, \"early_stop\": {\"patience\": 2}")),
              HasSubstr("training.early_stop.patience: there is no validation"));
  EXPECT_THAT(job_complaint(with_training("\"phases\": [{\"cache_flips\": true}]")),
              HasSubstr("training.phases[0].cache_flips: there are no cached features to mirror"));
  const Job job = job_of(with_training("\"epochs\": 1, \"class_weights\": {\"cat\": 2, \"dog\": 1.5}"));
  EXPECT_EQ(parse_job(to_json(job)), job);
  EXPECT_EQ(job.training.class_weights.at(1).second, 1.5);
}

TEST(JobRulesTest, WhatTheLossOfATaskWouldPassOverIsRefused) {
  const std::vector<std::string> task{"task=multilabel", R"(multilabel.classes=["a", "b"])"};
  const auto complaint = [&](const std::string& set) {
    std::vector<std::string> sets = task;
    sets.push_back(set);
    return job_complaint(kSmallJob, sets);
  };
  EXPECT_NO_THROW(job_of(kSmallJob, task));
  for (const char* key : {"training.label_smoothing", "training.mixup", "training.cutmix"}) {
    EXPECT_THAT(complaint(base::text(key, "=0.1")), HasSubstr(base::text(key, ": is of task classify")));
  }
  EXPECT_THAT(
      complaint("model.name=googlenet"),
      HasSubstr("model.auxiliary_heads: task multilabel has no loss for them\n  fix: \"auxiliary_heads\": false"));
}

TEST(JobRulesTest, ChecksRulesBetweenFields) {
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 1, \"micro_batch\": 64")),
              HasSubstr("job.json:2:43: training.micro_batch: is 64, more than training.global_batch, 32"));
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 2, \"schedule\": {\"warmup_epochs\": 2}")),
              HasSubstr("training.schedule.warmup_epochs: is 2, not shorter than the run of 2 epochs"));
  EXPECT_THAT(job_complaint(with_training("\"phases\": [{\"epochs\": 1}], \"schedule\": {\"warmup_epochs\": 2}")),
              HasSubstr("not shorter than training.phases[0] of 1 epochs"));
  EXPECT_THAT(job_complaint(with_training("\"phases\": [{\"epochs\": 1, \"cache_features\": true}]")),
              HasSubstr("job.json:2:58: training.phases[0].cache_features"));
  EXPECT_THAT(
      job_complaint(with_training("\"phases\": [{\"epochs\": 1, \"freeze_norm\": true}]"), {"model.name=googlenet"}),
      HasSubstr("training.phases[0].freeze_norm: leaves auxiliary heads without a gradient"));
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 9, \"schedule\": {\"name\": \"step\"}")),
              HasSubstr("has no steps"));
  EXPECT_THAT(job_complaint(kSmallJob, {"training.schedule.step_epochs=[2, 1]"}), HasSubstr("must increase"));
  EXPECT_THAT(job_complaint(kSmallJob, {"training.schedule.step_epochs=[1, 4]"}), HasSubstr("ends after the run"));
  EXPECT_THAT(job_complaint(kSmallJob, {"data.mean=[0.5]"}),
              HasSubstr("data.mean: 3 numbers are expected, these are 1"));
  EXPECT_THAT(job_complaint(kSmallJob, {"data.train=synthetic", "model.classes=2"}), HasSubstr("give data.samples"));
  EXPECT_THAT(job_complaint(kSmallJob, {"data.train=synthetic", "data.samples=9"}), HasSubstr("give model.classes"));
  EXPECT_EQ(job_of(kSmallJob, {"data.samples=9"}).data.samples, 9);  // of a folder: for plan, where it is not there
  EXPECT_THAT(job_complaint(kSmallJob, {"name=../x"}), HasSubstr("name: '../x' cannot name a folder"));
  EXPECT_THAT(job_complaint(kSmallJob, {"training.clip_norm=1", "training.clip_value=0.5"}),
              HasSubstr("training.clip_value: stands there beside training.clip_norm, and a gradient is clipped by one "
                        "of them\n  fix: keep one of the two"));
  EXPECT_THAT(job_complaint(kSmallJob, {"training.optimizer.nesterov=true", "training.optimizer.momentum=0"}),
              HasSubstr("needs sgd or lars with momentum"));
}

TEST(JobRulesTest, NamesLargeBatchRulesThatLackTheirOtherHalf) {
  EXPECT_THAT(job_complaint(kSmallJob, {"training.schedule.scale=linear"}),
              HasSubstr("training.schedule.scale: the linear rule needs the batch that optimizer.lr was found for\n"
                        "  fix: for example \"base_batch\": 256"));
  EXPECT_THAT(job_complaint(kSmallJob, {"training.schedule.scale=sqrt", "training.schedule.base_batch=0"}),
              HasSubstr("the sqrt rule needs"));
  EXPECT_THAT(job_complaint(kSmallJob, {"training.schedule.base_batch=256"}), HasSubstr("without a rule"));
  EXPECT_THAT(job_complaint(kSmallJob, {"training.optimizer.trust=0.02"}), HasSubstr("is of lars alone"));
  EXPECT_THAT(job_complaint(kSmallJob, {"training.batch_norm=ghost"}), HasSubstr("ghost needs the size of its slices"));
  EXPECT_THAT(job_complaint(kSmallJob, {"training.ghost_batch=8"}), HasSubstr("training.batch_norm is not ghost"));
  EXPECT_THAT(job_complaint(kSmallJob, {"training.batch_norm=ghost", "training.ghost_batch=33"}),
              HasSubstr("training.ghost_batch: is 33, more than training.global_batch, 32\n  fix: give 32 at most"));
  EXPECT_THAT(
      job_complaint(kSmallJob, {"training.batch_norm=ghost", "training.ghost_batch=9", "training.micro_batch=8"}),
      HasSubstr("training.ghost_batch: is 9, more than training.micro_batch, 8"));
}

TEST(JobRulesTest, ADetectorAndTheTaskOfObjectsGoTogether) {
  EXPECT_THAT(job_complaint(kSmallJob, {"task=instances"}),
              HasSubstr("model.name: is resnet18, and task instances needs a detector\n"
                        "  fix: \"name\": \"maskrcnn_resnet50_fpn\""));
  EXPECT_THAT(job_complaint(kSmallJob, {"model.name=maskrcnn_resnet50_fpn"}),
              HasSubstr("task: is classify, and maskrcnn_resnet50_fpn finds objects"));
  const auto with = [](const std::string& name, const std::string& more) {
    return std::vector<std::string>{"task=instances", "model.name=" + name, more};
  };
  EXPECT_THAT(job_complaint(kSmallJob, with("maskrcnn_resnet50_fpn", "instances.masks=false")),
              HasSubstr("instances.masks: is false, and maskrcnn_resnet50_fpn learns masks"));
  EXPECT_THAT(job_complaint(kSmallJob, with("fasterrcnn_resnet50_fpn", "instances.masks=true")),
              HasSubstr("instances.masks: is true, and fasterrcnn_resnet50_fpn learns boxes alone"));
  EXPECT_THAT(job_complaint(kSmallJob, with("maskrcnn_resnet50_fpn", "evaluation.views=flip")),
              HasSubstr("evaluation.views: detections of several views cannot be averaged"));
  EXPECT_EQ(job_of(kSmallJob, with("maskrcnn_resnet50_fpn", "instances.roi_slots=64")).instances.mask_slots(), 16);
}

TEST(JobRulesTest, AFasterRcnnImpliesBoxesAlone) {
  EXPECT_FALSE(job_of(kSmallJob, {"task=instances", "model.name=fasterrcnn_resnet50_fpn"}).instances.masks);
  EXPECT_TRUE(job_of(kSmallJob, {"task=instances", "model.name=maskrcnn_resnet50_fpn"}).instances.masks);
}

TEST(JobRulesTest, CanvasesAreSmallerThanTheImageSize) {
  const auto with = [](const std::string& canvases, const std::string& more = "data.image_size=[800,1344]") {
    return std::vector<std::string>{"task=instances", "model.name=maskrcnn_resnet50_fpn",
                                    "instances.canvases=" + canvases, more};
  };
  EXPECT_EQ(job_of(kSmallJob, with(R"(["800x1088","800"])")).instances.canvases.size(), 2U);
  EXPECT_THAT(job_complaint(kSmallJob, with(R"(["wide"])")), HasSubstr("instances.canvases[0]: \"wide\" is no size"));
  EXPECT_THAT(job_complaint(kSmallJob, with(R"(["800x1000"])")), HasSubstr("800x1000 is no multiple of 32"));
  EXPECT_THAT(job_complaint(kSmallJob, with(R"(["800x1088","1344x800"])")),
              HasSubstr("instances.canvases[1]: 1344x800 is no part of data.image_size, 800x1344"));
  EXPECT_THAT(job_complaint(kSmallJob, with(R"(["32x32"])", "data.order=windows")),
              HasSubstr("data.order: is windows"));
}

TEST(JobRulesTest, ObjectsHaveNoLabelOfTheWholeImage) {
  const std::string all =
      job_complaint(kSmallJob, {"task=instances", "model.name=maskrcnn_resnet50_fpn", "training.mixup=0.2",
                                "training.cutmix=1", "training.label_smoothing=0.1", "training.class_balance=1",
                                "data.augment=rand", "instances.scale_min=1.5"});
  for (const char* wrong :
       {"training.mixup: is of task classify", "training.cutmix: is of task classify",
        "training.label_smoothing: is of task classify", "training.class_balance: is of task classify",
        "data.augment: is rand, which would move the image away from what is known of it",
        "instances.scale_min: is 1.5, more than scale_max, 1"}) {
    EXPECT_THAT(all, HasSubstr(wrong));
  }
}

TEST(JobRulesTest, VirtualRanksTakeNeitherSyncBatchNormNorRoundedSums) {
  EXPECT_THAT(job_complaint(kSmallJob, {"training.virtual_ranks=4", "training.batch_norm=sync"}),
              HasSubstr("training.batch_norm: is sync, which would undo the slices of virtual_ranks"));
  EXPECT_THAT(job_complaint(kSmallJob, {"training.virtual_ranks=4", "training.reduce_precision=bf16"}),
              HasSubstr("training.reduce_precision: is bf16, but virtual_ranks exchange their partial sums whole"));
}

TEST(JobRulesTest, ANowcastNeedsAForecasterAndFramesOfOneKind) {
  EXPECT_THAT(job_complaint(kSmallJob, {"task=nowcast"}), HasSubstr("task nowcast needs a forecaster"));
  EXPECT_THAT(job_complaint(kSmallJob, {"model.name=convlstm"}), HasSubstr("convlstm forecasts frames"));
  const std::string problem =
      job_complaint(kSmallJob, {"task=nowcast", "model.name=convlstm", "nowcast.state_kernel=4", "nowcast.widths=[]",
                                "nowcast.thresholds=[5,2]", "data.augment=strong", "training.precision=amp"});
  for (const char* words : {"nowcast.state_kernel: is 4, which has no centre", "nowcast.widths: names no layer",
                            "nowcast.thresholds: must increase", "data.augment: is strong, which changes colours",
                            "training.precision: is amp, and a ConvLSTM"}) {
    EXPECT_THAT(problem, HasSubstr(words));
  }
}

}  // namespace
}  // namespace lockstep::spec
