// SPDX-License-Identifier: Apache-2.0
// The update without the host, with the CPU's references of its operators, beside the host's. On a GPU:
// tests/nccl/step_graph_on_gpu.cpp.
#include "lockstep/step/device_update.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/full_like.h>
#include <gtest/gtest.h>

#include <limits>

#include "lockstep/step/step.h"
#include "lockstep/step/tiny_network.h"

namespace lockstep::step {
namespace {

struct Trained {
  std::vector<StepResult> results;
  std::vector<at::Tensor> values;
};

Trained train(const spec::Training& training, bool on_device, const std::vector<Samples>& batches,
              double ema_decay = 0) {
  const auto group = comm::single_group();
  auto network = tiny::network();
  Ema ema(ema_decay, network);
  StepOptions options;
  options.training = training;
  options.on_device = on_device;
  options.ema = ema_decay > 0 ? &ema : nullptr;
  Step step(network, *group, options);
  Trained trained;
  for (const Samples& batch : batches) trained.results.push_back(step.run(batch, 0.05));
  for (const auto& entry : network.parameters()) trained.values.push_back(entry.tensor.detach().clone());
  for (const auto& entry : network.buffers()) trained.values.push_back(entry.tensor.clone());
  for (const auto& entry : step.state()) trained.values.push_back(entry.tensor.clone());
  for (const auto& entry : ema.averages()) trained.values.push_back(entry.tensor.clone());
  return trained;
}

std::vector<Samples> batches(int64_t count) {
  std::vector<Samples> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(tiny::samples(0, 12, 12, i));
  return all;
}

void expect_alike(const Trained& a, const Trained& b, double tolerance = 1e-5) {
  ASSERT_EQ(a.values.size(), b.values.size());
  for (size_t i = 0; i < a.values.size(); ++i) {
    EXPECT_TRUE(at::allclose(a.values[i], b.values[i], tolerance, tolerance, /*equal_nan=*/true)) << i;
  }
  for (size_t i = 0; i < a.results.size(); ++i) {
    EXPECT_NEAR(a.results[i].loss, b.results[i].loss, 1e-4);
    EXPECT_NEAR(a.results[i].gradient_norm, b.results[i].gradient_norm, 1e-4);
    EXPECT_EQ(a.results[i].finite, b.results[i].finite);
  }
}

TEST(DeviceUpdateTest, TrainsAsTheHostDoes) {
  for (const auto name : {spec::OptimizerName::sgd, spec::OptimizerName::adamw}) {
    spec::Training training;
    training.optimizer.name = name;
    training.optimizer.momentum = 0.9;
    training.optimizer.weight_decay = 0.01;
    training.clip_norm = 0.5;
    training.clip_value = 0.01;
    expect_alike(train(training, true, batches(4), 0.9), train(training, false, batches(4), 0.9));
  }
}

TEST(DeviceUpdateTest, LastingCopiesAreTheCastsOfEachStep) {
  spec::Training training;
  training.precision = spec::Precision::bf16;
  training.global_batch = 12;
  expect_alike(train(training, true, batches(4)), train(training, false, batches(4)), 1e-4);
  training.micro_batch = 5;  // three passes: casts, and sums in fp32
  expect_alike(train(training, true, batches(4)), train(training, false, batches(4)), 1e-4);
}

TEST(DeviceUpdateTest, AStepThatIsNotFiniteChangesNothing) {
  auto all = batches(3);
  for (auto& field : all[1].fields) {
    if (field.tensor.is_floating_point()) {
      field.tensor = at::full_like(field.tensor, std::numeric_limits<float>::quiet_NaN());
    }
  }
  spec::Training training;
  const Trained there = train(training, true, all, 0.9), here = train(training, false, all, 0.9);
  EXPECT_FALSE(there.results[1].finite);
  expect_alike({.results = {there.results[0], there.results[2]}, .values = there.values},
               {.results = {here.results[0], here.results[2]}, .values = here.values});
}

TEST(DeviceUpdateTest, RowsThatWereNotReadMakeASmallerMean) {
  auto all = batches(2);
  all[0].was_read.assign(12, 1);
  all[0].was_read[3] = all[0].was_read[4] = 0;
  all[1].was_read.assign(12, 0);
  expect_alike(train({}, true, all), train({}, false, all));
}

TEST(DeviceUpdateTest, LayersMeasuredByTheHostNeedIt) {
  const auto group = comm::single_group();
  StepOptions options;
  options.on_device = true;
  EXPECT_TRUE(DeviceUpdate::is_possible(options, *group));
  options.training.optimizer.name = spec::OptimizerName::lars;
  EXPECT_FALSE(DeviceUpdate::is_possible(options, *group));
}

}  // namespace
}  // namespace lockstep::step
