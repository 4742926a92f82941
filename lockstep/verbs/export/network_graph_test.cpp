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

TEST(NetworkGraphTest, GivesMapsOfClasses) {
  spec::Job job = job_for("fcdensenet56", {36, 50});
  job.task = spec::Task::segment;
  job.model.width = 2;
  const auto graph = network_graph(model::make_network(job), job, {});
  check(graph->model());
  EXPECT_EQ(graph->model().outputs[0].name, "logit_map");
  EXPECT_EQ(graph->model().outputs[0].dims, (std::vector<onnx::Dim>{"batch", 4, 36, 50}));
}

TEST(NetworkGraphTest, TakesFramesAndGivesThoseThatFollow) {
  for (const char* name : {"convlstm", "rainnet"}) {
    spec::Job job = job_for(name, {16, 32});
    job.task = spec::Task::nowcast;
    job.nowcast.inputs = 3;
    job.nowcast.outputs = 2;
    job.nowcast.widths = {4, 3};
    if (job.model.name == "rainnet") job.model.width = 4;
    const model::Network network = model::make_network(job);
    const auto graph = network_graph(network, job, {});
    check(graph->model());
    EXPECT_EQ(graph->model().inputs[0].name, "frames");
    EXPECT_EQ(graph->model().inputs[0].dims, (std::vector<onnx::Dim>{"batch", 3, 1, 16, 32})) << name;
    EXPECT_EQ(graph->model().outputs[0].dims, (std::vector<onnx::Dim>{"batch", 2, 1, 16, 32})) << name;
    EXPECT_THROW(network_graph(network, job, {.preprocess = true}), base::Error) << name;
  }
}

TEST(NetworkGraphTest, ACaptionerIsRefusedForWhatItDoes) {
  spec::Job job = job_for("attend_resnet18", 64);
  job.task = spec::Task::caption;
  try {
    network_graph(model::make_network(job), job, {});
    ADD_FAILURE() << "exported";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    EXPECT_THAT(error.message(), HasSubstr("it searches for its words one after the other"));
    EXPECT_THAT(error.fix(), HasSubstr("lockstep serve"));
  }
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
