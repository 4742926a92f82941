// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/rcnn.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::model {
namespace {

using Sizes = std::vector<int64_t>;

spec::Job small_job(const std::string& name = "maskrcnn_resnet18_fpn") {
  spec::Job job;
  job.task = spec::Task::instances;
  job.model.name = name;
  job.model.classes = 3;
  job.model.width = 8;
  job.data.image_size = spec::ImageSize(64, 96);
  job.instances.slots = 6;
  job.instances.masks = name.starts_with("maskrcnn");
  job.instances.mask_size = 28;
  job.instances.proposals = 50;
  job.instances.evaluated_proposals = 40;
  job.instances.anchor_samples = 32;
  job.instances.roi_slots = 16;
  job.instances.detections = 9;
  job.instances.score_threshold = 0;
  return job;
}

// Two images, the second without an object.
NamedTensors small_fields(const spec::Job& job) {
  NamedTensors fields{{"image", at::randn({2, 3, 64, 96})},
                      {"shown", at::tensor({64.F, 96.F, 50.F, 70.F}).view({2, 2})},
                      {"boxes", at::zeros({2, 6, 4})},
                      {"labels", at::zeros({2, 6}, at::kLong)}};
  fields.at("boxes")[0][2].copy_(at::tensor({10.F, 12.F, 50.F, 40.F}));
  fields.at("labels")[0][2].fill_(3);
  if (job.instances.masks) fields.set("masks", at::ones({2, 6, 28, 28}, at::kByte));
  return fields;
}

// Trunks of phones: maps of strides 4 to 32, the last of each stride; their classifiers' weights fit by name.
TEST(RcnnTest, StandsOnMobileTrunks) {
  for (const std::string name : {"maskrcnn_mobilenet_v2_fpn", "fasterrcnn_efficientnet_lite0_fpn"}) {
    SCOPED_TRACE(name);
    const spec::Job job = small_job(name);
    const Network network = make_network(job);
    std::vector<int64_t> channels;
    for (const Named& parameter : network.parameters()) {
      if (parameter.name.find("fpn.inner_blocks") != std::string::npos && parameter.name.ends_with("weight"))
        channels.push_back(parameter.tensor.size(1));
    }
    const bool mobile = name.find("mobilenet") != std::string::npos;
    EXPECT_EQ(channels, mobile ? (Sizes{24, 32, 96, 320}) : (Sizes{24, 40, 112, 320}));
    EXPECT_EQ(network.parameters().front().name,
              mobile ? "backbone.body.0.0.weight" : "backbone.body._conv_stem.weight");
    EXPECT_EQ(network.forward(small_fields(job), Mode::evaluate).at("boxes").sizes().vec(), (Sizes{2, 9, 4}));
  }
}

// The network takes images of whatever canvas: anchors stand where the map's pixels are.
TEST(RcnnTest, TakesAnotherCanvas) {
  spec::Job job = small_job();
  const NamedTensors fields = small_fields(job);
  const NamedTensors found = make_network(job).forward(fields, Mode::evaluate);
  job.data.image_size = spec::ImageSize(128, 128);
  const NamedTensors same = make_network(job).forward(fields, Mode::evaluate);
  EXPECT_TRUE(at::allclose(found.at("boxes"), same.at("boxes")));
  EXPECT_TRUE(at::allclose(found.at("scores"), same.at("scores")));
}

TEST(RcnnTest, EvaluationGivesDetectionsOfFixedShapeInsideOfTheImages) {
  const spec::Job job = small_job();
  const Network network = make_network(job);
  const NamedTensors found = network.forward(small_fields(job), Mode::evaluate);
  EXPECT_EQ(found.at("boxes").sizes().vec(), (Sizes{2, 9, 4}));
  EXPECT_EQ(found.at("scores").sizes().vec(), (Sizes{2, 9}));
  EXPECT_EQ(found.at("labels").sizes().vec(), (Sizes{2, 9}));
  EXPECT_EQ(found.at("masks").sizes().vec(), (Sizes{2, 9, 28, 28}));
  EXPECT_GT(found.at("scores").gt(0).sum().item<int64_t>(), 0);
  EXPECT_LE(found.at("boxes")[1].select(1, 2).max().item<float>(), 70);
  EXPECT_LE(found.at("boxes")[1].select(1, 3).max().item<float>(), 50);
  EXPECT_TRUE(found.at("labels").gt(0).equal(found.at("scores").gt(0)));
}

TEST(RcnnTest, TrainingGivesWhatItsLossNeedsAndEveryParameterGetsAGradient) {
  for (const char* name : {"maskrcnn_resnet18_fpn", "fasterrcnn_resnet18_fpn"}) {
    const spec::Job job = small_job(name);
    for (const Mode mode : {Mode::train, Mode::frozen}) {
      const Network network = make_network(job);
      const NamedTensors outputs = network.forward(small_fields(job), mode);
      EXPECT_EQ(outputs.size(), job.instances.masks ? 12U : 9U);
      EXPECT_EQ(outputs.at("objectness").sizes().vec(), (Sizes{2, 32}));
      EXPECT_EQ(outputs.at("class_logits").sizes().vec(), (Sizes{2, 16, 4}));
      at::Tensor sum = at::zeros({});
      for (const auto& [output, tensor] : outputs) {
        if (tensor.requires_grad()) sum = sum + tensor.sum();
      }
      sum.backward();
      for (const Named& parameter : network.parameters()) {
        EXPECT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
      }
    }
  }
}

TEST(RcnnTest, RegionsAreChosenAmongTheObjectsToo) {
  const spec::Job job = small_job();
  const NamedTensors outputs = make_network(job).forward(small_fields(job), Mode::train);
  const at::Tensor labels = outputs.at("class_targets");
  EXPECT_EQ(labels[0].max().item<int64_t>(), 3);
  EXPECT_EQ(labels[1].max().item<int64_t>(), 0);  // background alone
  EXPECT_GE(outputs.at("masks_valid")[0].sum().item<float>(), 1);
  EXPECT_EQ(outputs.at("masks_valid")[1].sum().item<float>(), 0);
  EXPECT_TRUE(outputs.at("box_targets").isfinite().all().item<bool>());
  EXPECT_GE((outputs.at("objectness_targets")[0] * outputs.at("anchors_valid")[0]).sum().item<float>(), 1);
}

TEST(RcnnTest, ABlankImageHasNoPart) {
  const spec::Job job = small_job();
  NamedTensors fields = small_fields(job);
  fields.at("shown")[1].zero_();
  const NamedTensors outputs = make_network(job).forward(fields, Mode::train);
  EXPECT_EQ(outputs.at("anchors_valid")[1].sum().item<float>(), 0);
  EXPECT_EQ(outputs.at("class_targets")[1].max().item<int64_t>(), -1);
}

TEST(RcnnTest, AnObjectWithoutAMaskTrainsItsBoxAlone) {
  const spec::Job job = small_job();
  NamedTensors fields = small_fields(job);
  fields.at("masks").zero_();
  const NamedTensors outputs = make_network(job).forward(fields, Mode::train);
  EXPECT_EQ(outputs.at("masks_valid").sum().item<float>(), 0);
  EXPECT_EQ(outputs.at("class_targets")[0].max().item<int64_t>(), 3);
}

TEST(RcnnTest, ACanvasThatTheCoarsestMapDoesNotTileIsAnError) {
  spec::Job job = small_job();
  job.data.image_size = spec::ImageSize(800, 1200);
  try {
    make_network(job, at::kMeta);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("data.image_size: 800x1200 is no multiple of 32"));
    EXPECT_THAT(error.fix(), testing::HasSubstr("use [800, 1216]"));
  }
}

}  // namespace
}  // namespace lockstep::model
