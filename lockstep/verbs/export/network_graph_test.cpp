// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/export/network_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::verbs::exporting {
namespace {

using testing::HasSubstr;

spec::Job job_for(const std::string& name, const spec::ImageSize& size) {
  spec::Job job;
  job.model.name = name;
  job.model.classes = 4;
  job.data.image_size = size;
  return job;
}

// What the graphs compute is held against the networks by tests/oracles/onnx.py.
TEST(NetworkGraphTest, HoldsTogetherForEveryFamily) {
  for (const char* name : {"linear", "smallcnn", "resnet18", "vit_tiny_patch16_224", "googlenet", "mobilenet_v2"}) {
    spec::Job job = job_for(name, 32);
    if (job.model.name.starts_with("vit")) job.model.depth = 1;
    const auto graph = network_graph(model::make_network(job), job, {});
    const onnx::Model& model = graph->model();
    check(model);
    EXPECT_EQ(model.inputs[0].dims, (std::vector<onnx::Dim>{"batch", 3, 32, 32})) << name;
    ASSERT_EQ(model.outputs.size(), 1U) << name;
    EXPECT_EQ(model.outputs[0].dims, (std::vector<onnx::Dim>{"batch", 4})) << name;
  }
}

TEST(NetworkGraphTest, TakesBytesWhereItIsToNormaliseThem) {
  const spec::Job job = job_for("linear", {16, 24});
  const auto graph = network_graph(model::make_network(job), job, {.preprocess = true});
  check(graph->model());
  EXPECT_EQ(graph->model().inputs[0].type, onnx::Type::uint8);
  EXPECT_EQ(graph->model().inputs[0].dims, (std::vector<onnx::Dim>{"batch", 16, 24, 3}));
}

TEST(NetworkGraphTest, MaskRcnnIsRefusedWithWhatToDoInstead) {
  spec::Job job = job_for("maskrcnn_resnet18_fpn", 64);
  job.task = spec::Task::instances;
  try {
    network_graph(model::make_network(job), job, {});
    ADD_FAILURE() << "exported";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    EXPECT_THAT(error.message(), HasSubstr("maskrcnn_resnet18_fpn is not exported to ONNX"));
    EXPECT_THAT(error.fix(), HasSubstr("--to FILE.safetensors"));
  }
}

}  // namespace
}  // namespace lockstep::verbs::exporting
