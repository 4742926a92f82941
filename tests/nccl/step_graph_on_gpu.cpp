// SPDX-License-Identifier: Apache-2.0
// A step that is replayed as a CUDA graph does what it did before.
#include <ATen/Context.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "lockstep/model/network.h"
#include "lockstep/step/step.h"

namespace lockstep::step {
namespace {

const at::Device kGpu(at::kCUDA, 0);

model::Network make(const std::string& name) {
  spec::Model model;
  model.name = name;
  model.classes = 10;
  return model::make_network(model, 64, /*seed=*/3, kGpu);
}

std::vector<Samples> batches(int64_t count) {
  at::manual_seed(1);
  std::vector<Samples> all;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t rows = i % 7 == 5 ? 6 : 16;  // odd ones between
    all.push_back({i,
                   0,
                   rows,
                   {{"image", at::randn({rows, 3, 64, 64}).contiguous(at::MemoryFormat::ChannelsLast).to(kGpu)},
                    {"label", at::randint(10, {rows}, at::kLong).to(kGpu)}}});
  }
  return all;
}

struct Run {
  std::vector<double> losses;
  std::vector<at::Tensor> weights;
};

Run train(const std::string& name, const std::vector<Samples>& samples, bool graph, spec::Precision precision) {
  auto network = make(name);
  const auto group = comm::single_group();
  StepOptions options;
  options.device = kGpu;
  options.training.precision = precision;
  options.training.optimizer.momentum = 0.9;
  options.graph = graph;
  Step step(network, *group, options);
  Run run;
  for (const Samples& batch : samples) run.losses.push_back(step.run(batch, 0.01).loss);
  for (const auto& entry : network.parameters()) run.weights.push_back(entry.tensor.detach().clone());
  for (const auto& entry : network.buffers()) run.weights.push_back(entry.tensor.detach().clone());
  return run;
}

void expect_same(const Run& a, const Run& b) {
  EXPECT_EQ(a.losses, b.losses);
  ASSERT_EQ(a.weights.size(), b.weights.size());
  for (size_t i = 0; i < a.weights.size(); ++i) EXPECT_TRUE(at::equal(a.weights[i], b.weights[i])) << i;
}

TEST(StepGraphOnGpuTest, TrainsToTheSameBits) {
  at::globalContext().setDeterministicCuDNN(true);
  const auto samples = batches(30);
  for (const auto precision : {spec::Precision::bf16, spec::Precision::amp, spec::Precision::fp32}) {
    expect_same(train("resnet18", samples, true, precision), train("resnet18", samples, false, precision));
  }
}

TEST(StepGraphOnGpuTest, DrawsTheDropoutOfEachStep) {
  at::globalContext().setDeterministicCuDNN(true);
  const auto samples = batches(24);
  expect_same(train("googlenet", samples, true, spec::Precision::bf16),
              train("googlenet", samples, false, spec::Precision::bf16));
}

}  // namespace
}  // namespace lockstep::step
