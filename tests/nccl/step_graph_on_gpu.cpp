// SPDX-License-Identifier: Apache-2.0
// A step that is replayed as a CUDA graph does what it did before.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "lockstep/model/network.h"
#include "lockstep/objective/objective.h"
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
    const int64_t rows = i % 7 == 5 ? 6 : 16;  // odd ones between: before the capture and behind it
    all.push_back({i,
                   0,
                   rows,
                   {{"image", at::randn({rows, 3, 64, 64}).contiguous(at::MemoryFormat::ChannelsLast).to(kGpu)},
                    {"label", at::randint(10, {rows}, at::kLong).to(kGpu)}}});
  }
  return all;
}

struct Trained {
  int64_t captured_at = -1;  // step; -1: none was
  std::vector<double> losses;
  std::vector<at::Tensor> weights;
};

Trained train(const std::string& name, const std::vector<Samples>& samples, bool graph,
              const spec::Training& training) {
  auto network = make(name);
  const auto group = comm::single_group();
  Ema ema(0.9, network);
  StepOptions options;
  options.device = kGpu;
  options.training = training;
  options.graph = graph;
  options.ema = &ema;
  Step step(network, *group, options);
  Trained run;
  for (const Samples& batch : samples) {
    run.losses.push_back(step.run(batch, 0.01).loss);
    if (step.captured() && run.captured_at < 0) run.captured_at = batch.step;
  }
  for (const auto& entry : ema.averages()) run.weights.push_back(entry.tensor.detach().clone());
  for (const auto& entry : step.state()) run.weights.push_back(entry.tensor.detach().clone());
  for (const auto& entry : network.parameters()) run.weights.push_back(entry.tensor.detach().clone());
  for (const auto& entry : network.buffers()) run.weights.push_back(entry.tensor.detach().clone());
  return run;
}

// Step 13 has the twelfth batch of 16 rows: it is captured, and from there on only odd batches are not replayed.
constexpr int64_t kCaptured = 13;

void expect_same_as_eager(const std::string& name, const std::vector<Samples>& samples, const spec::Training& training,
                          Trained* replayed = nullptr) {
  const Trained a = train(name, samples, true, training);
  const Trained b = train(name, samples, false, training);
  EXPECT_EQ(a.captured_at, kCaptured);
  EXPECT_EQ(b.captured_at, -1);
  ASSERT_EQ(a.losses.size(), b.losses.size());
  for (size_t i = 0; i < a.losses.size(); ++i) {
    EXPECT_TRUE(a.losses[i] == b.losses[i] || (std::isnan(a.losses[i]) && std::isnan(b.losses[i]))) << i;
  }
  ASSERT_EQ(a.weights.size(), b.weights.size());
  for (size_t i = 0; i < a.weights.size(); ++i) EXPECT_TRUE(at::equal(a.weights[i], b.weights[i])) << i;
  if (replayed) *replayed = a;
}

spec::Training training_with(spec::Precision precision) {
  spec::Training training;
  training.precision = precision;
  training.global_batch = 16;
  training.optimizer.momentum = 0.9;
  return training;
}

TEST(StepGraphOnGpuTest, TrainsToTheSameBits) {
  at::globalContext().setDeterministicCuDNN(true);
  const auto samples = batches(30);
  for (const auto precision : {spec::Precision::bf16, spec::Precision::amp, spec::Precision::fp32}) {
    const auto training = training_with(precision);
    expect_same_as_eager("resnet18", samples, training);
  }
}

TEST(StepGraphOnGpuTest, DrawsTheDropoutOfEachStep) {
  at::globalContext().setDeterministicCuDNN(true);
  const auto samples = batches(24);
  const auto training = training_with(spec::Precision::bf16);
  expect_same_as_eager("googlenet", samples, training);
}

TEST(StepGraphOnGpuTest, ClipsAndDecaysWithAdamwInsideToo) {
  at::globalContext().setDeterministicCuDNN(true);
  const auto samples = batches(24);
  auto training = training_with(spec::Precision::bf16);
  training.optimizer.name = spec::OptimizerName::adamw;
  training.optimizer.weight_decay = 0.05;
  training.clip_norm = 0.5;
  expect_same_as_eager("resnet18", samples, training);
  training.micro_batch = 8;  // two passes: casts, sums in fp32
  expect_same_as_eager("resnet18", samples, training);
}

spec::Job detector_job() {
  spec::Job job;
  job.task = spec::Task::instances;
  job.model.name = "maskrcnn_resnet18_fpn";
  job.model.classes = 3;
  job.data.image_size = spec::ImageSize(128, 160);
  job.instances.slots = 6;
  job.instances.roi_slots = 64;
  job.training = training_with(spec::Precision::bf16);
  job.training.global_batch = 4;
  return job;
}

std::vector<StepResult> detector_steps(const spec::Job& job, bool graph) {
  auto network = model::make_network(job, kGpu);
  const auto group = comm::single_group();
  StepOptions options;
  options.device = kGpu;
  options.training = job.training;
  options.objective = objective::make_objective(job);
  options.graph = graph;
  Step step(network, *group, options);
  at::manual_seed(1);
  std::vector<StepResult> results;
  for (int64_t i = 0; i < 30; ++i) {
    const int64_t width = i % 3 == 1 ? 128 : 160;  // two canvases; the twelfth batch on the larger one is captured
    const at::Tensor corners = at::rand({4, 6, 2}) * 60 + 2, sides = at::rand({4, 6, 2}) * 50 + 10;
    const int64_t cells = job.instances.mask_size;
    const Samples batch{i,
                        0,
                        4,
                        {{"image", at::randn({4, 3, 128, width}).contiguous(at::MemoryFormat::ChannelsLast).to(kGpu)},
                         {"shown", at::tensor({128.F, static_cast<float>(width)}).expand({4, 2}).contiguous().to(kGpu)},
                         {"boxes", at::cat({corners, corners + sides}, 2).to(kGpu)},
                         {"labels", at::randint(0, 4, {4, 6}, at::kLong).to(kGpu)},
                         {"masks", at::randint(0, 2, {4, 6, cells, cells}, at::kByte).to(kGpu)}}};
    results.push_back(step.run(batch, /*lr=*/0));
    EXPECT_EQ(step.captured(), graph && i >= 17) << i;
  }
  return results;
}

// Weights that stay where they are make every loss one of the regions drawn in that step: the graph draws the same
// ones. Gradients differ by the order in which regions that overlap are added up.
TEST(StepGraphOnGpuTest, DetectorsLearnFromTheRegionsOfEachStep) {
  at::globalContext().setDeterministicCuDNN(true);
  const auto job = detector_job();
  testing::internal::CaptureStderr();
  const auto replayed = detector_steps(job, true);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");  // no note that it could not be captured
  const auto eager = detector_steps(job, false);
  for (size_t i = 0; i < eager.size(); ++i) {
    EXPECT_EQ(replayed[i].loss, eager[i].loss) << i;
    EXPECT_NEAR(replayed[i].gradient_norm, eager[i].gradient_norm, 1e-2 * eager[i].gradient_norm) << i;
  }
}

// Loss scales that overflow halve without a new capture, and a batch of no numbers changes nothing.
TEST(StepGraphOnGpuTest, StepsThatAreNotFiniteAreNotTaken) {
  at::globalContext().setDeterministicCuDNN(true);
  for (const auto precision : {spec::Precision::bf16, spec::Precision::amp}) {
    auto samples = batches(24);
    for (const size_t bad : {size_t{3}, size_t{16}, size_t{20}}) {
      for (auto& field : samples[bad].fields) {
        if (field.tensor.is_floating_point()) {
          field.tensor = at::full_like(field.tensor, std::numeric_limits<float>::infinity());
        }
      }
    }
    const auto training = training_with(precision);
    Trained replayed;
    expect_same_as_eager("resnet18", samples, training, &replayed);
    for (const at::Tensor& values : replayed.weights) EXPECT_TRUE(at::isfinite(values).all().item<bool>());
  }
}

// Libtorch's optimizers on the host's way, and ours on the GPU's, from the same weights; eager steps: what a graph
// makes of them has the same bits (above).
struct BothWays {
  model::Network on_gpu = make("resnet18"), by_host = make("resnet18");
  std::unique_ptr<comm::Group> group = comm::single_group();
  Step there, here;

  explicit BothWays(spec::OptimizerName name)
      : there(on_gpu, *group, options_of(name, true)), here(by_host, *group, options_of(name, false)) {}

  static StepOptions options_of(spec::OptimizerName name, bool on_gpu) {
    StepOptions options;
    options.device = kGpu;
    options.training = training_with(spec::Precision::bf16);
    options.training.optimizer.name = name;
    options.training.clip_norm = 1;
    options.on_device = on_gpu;
    options.graph = false;
    return options;
  }
};

// The first gradients have the same bits, so what the updates make of them differs by rounding alone: by so much of
// what a layer moved.
TEST(StepGraphOnGpuTest, TheFirstUpdateOnTheGpuIsTheHosts) {
  at::globalContext().setDeterministicCuDNN(true);
  const Samples batch = batches(1).front();
  for (const auto& [name, lr] :
       {std::pair{spec::OptimizerName::sgd, 0.1}, std::pair{spec::OptimizerName::adamw, 1e-3}}) {
    BothWays both(name);
    std::vector<at::Tensor> before;
    for (const auto& entry : both.on_gpu.parameters()) before.push_back(entry.tensor.detach().clone());
    const StepResult a = both.there.run(batch, lr), b = both.here.run(batch, lr);
    EXPECT_EQ(a.loss, b.loss);
    for (size_t i = 0; i < before.size(); ++i) {
      const at::Tensor there = both.on_gpu.parameters()[i].tensor.detach();
      const at::Tensor here = both.by_host.parameters()[i].tensor.detach();
      EXPECT_LT((there - here).norm().item<double>(), 1e-3 * (here - before[i]).norm().item<double>())
          << both.on_gpu.parameters()[i].name;
    }
  }
}

// Later on a weight here and there rounds to another bf16, and AdamW's first steps are as long for a gradient near 0 as
// for any other: of its weights no more than the loss and the norm is held to the host's.
TEST(StepGraphOnGpuTest, UpdatesOnTheGpuLeadWhereTheHostsDo) {
  at::globalContext().setDeterministicCuDNN(true);
  for (const auto name : {spec::OptimizerName::sgd, spec::OptimizerName::adamw}) {
    BothWays both(name);
    for (const Samples& batch : batches(8)) {
      const StepResult a = both.there.run(batch, 1e-3), b = both.here.run(batch, 1e-3);
      EXPECT_NEAR(a.loss, b.loss, 0.03 * std::abs(b.loss));
      EXPECT_NEAR(a.gradient_norm, b.gradient_norm, 0.1 * b.gradient_norm);
    }
    if (name == spec::OptimizerName::adamw) continue;
    for (size_t i = 0; i < both.on_gpu.parameters().size(); ++i) {
      const at::Tensor a = both.on_gpu.parameters()[i].tensor.detach(),
                       b = both.by_host.parameters()[i].tensor.detach();
      EXPECT_LT(((a - b).norm() / (b.norm() + 1e-3)).item<double>(), 0.02) << both.on_gpu.parameters()[i].name;
    }
  }
}

}  // namespace
}  // namespace lockstep::step
