// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/recompute.h"

#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/loader/loader.h"
#include "lockstep/step/step.h"
#include "lockstep/step/tiny_network.h"

namespace lockstep::step {
namespace {

struct Recipe {
  std::string name;
  int64_t image_size = 32;
  spec::Precision precision = spec::Precision::fp32;
  std::vector<std::string> recompute = {"all"};
  int64_t micro_batch = 0;
  std::string train_from = "";
  bool freeze_norm = false;
};

spec::Model model_of(const std::string& name) {
  spec::Model model;
  model.name = name;
  model.classes = 3;
  model.dropout = name.starts_with("vit") ? 0.2 : 0;
  model.drop_path = name.starts_with("vit") ? 0.3 : 0;
  if (name.starts_with("vit")) {
    model.depth = 3;
    model.width = 48;
  }
  if (name.starts_with("resnet")) model.width = 8;
  return model;
}

Samples images(int64_t rows, int64_t size, int64_t step) {
  const at::Tensor values =
      (at::arange(rows * 3 * size * size, at::kFloat).add(static_cast<double>(step)) * 0.37).sin();
  return {step,
          0,
          rows,
          {{"image", values.view({rows, 3, size, size})}, {"label", at::arange(rows, at::kLong).remainder(3)}}};
}

// Gradients of the last step, then weights, statistics and losses after it.
std::vector<at::Tensor> after_two_steps(const Recipe& recipe, const std::vector<std::string>& recompute) {
  at::set_num_threads(1);
  const auto group = comm::single_group();
  auto network = model::make_network(model_of(recipe.name), recipe.image_size, 7);
  StepOptions options;
  options.training.precision = recipe.precision;
  options.training.recompute = recompute;
  options.training.micro_batch = recipe.micro_batch;
  options.freeze_norm = recipe.freeze_norm;
  if (!recipe.train_from.empty()) options.train_from = network.index_of(recipe.train_from);
  Step step(network, *group, options);
  std::vector<at::Tensor> all;
  for (int64_t i = 0; i < 2; ++i) {
    const double loss = step.run(images(4, recipe.image_size, i), 0.05).loss;
    all.push_back(at::arange(1, at::kDouble).add(loss));
  }
  for (const auto& gradient : step.gradients()) all.push_back(gradient.clone());
  for (const auto& entry : network.parameters()) all.push_back(entry.tensor.detach());
  for (const auto& entry : network.buffers()) all.push_back(entry.tensor);
  return all;
}

void expect_same_bits(const Recipe& recipe) {
  const auto kept = after_two_steps(recipe, {});
  const auto again = after_two_steps(recipe, recipe.recompute);
  ASSERT_EQ(kept.size(), again.size());
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(at::equal(kept[i], again[i])) << recipe.name << " tensor " << i;
}

TEST(RecomputeTest, GivesTheSameBits) {
  expect_same_bits({.name = "resnet18"});
  expect_same_bits({.name = "densenet121"});
  expect_same_bits({.name = "vit_tiny_patch16_224"});  // dropout and drop_path draw the same numbers again
}

TEST(RecomputeTest, GivesTheSameBitsInSixteenBits) {
  for (const auto precision : {spec::Precision::bf16, spec::Precision::amp}) {
    expect_same_bits({.name = "resnet18", .precision = precision});
    expect_same_bits({.name = "vit_tiny_patch16_224", .precision = precision});
  }
}

TEST(RecomputeTest, CarriesTheGradientsOfAuxiliaryHeads) {
  expect_same_bits({.name = "googlenet", .image_size = 64});
}

TEST(RecomputeTest, GoesWithMicroBatchesFrozenBlocksAndFrozenNorms) {
  expect_same_bits({.name = "resnet18", .micro_batch = 2});
  expect_same_bits({.name = "vit_tiny_patch16_224", .micro_batch = 1});
  expect_same_bits({.name = "resnet18", .train_from = "layer3.0"});
  expect_same_bits({.name = "resnet18", .freeze_norm = true});
}

TEST(RecomputeTest, TakesBlocksByName) {
  expect_same_bits({.name = "resnet18", .recompute = {"layer1.0", "layer2.1"}});
  const auto network = tiny::network();
  EXPECT_EQ(std::ranges::count(recomputed_blocks(network, {"stem"}), true), 1);
  EXPECT_EQ(std::ranges::count(recomputed_blocks(network, {"all"}), false), 0);
  EXPECT_EQ(std::ranges::count(recomputed_blocks(network, {}), true), 0);
  EXPECT_THROW(recomputed_blocks(network, {"stern"}), base::Error);
}

// Gives a value that carries a gradient, the place of its largest entry, and a copy through which nothing flows.
class Chooser final : public model::Block {
 public:
  explicit Chooser(const std::string& name) : Block(name) {
    parameters.push_back({"scale", at::full({1}, 3.0).requires_grad_(true)});
  }
  model::Bundle run(const model::Bundle& input, model::Mode) override {
    const at::Tensor value = input[0] * parameters[0].tensor;
    return {value, value.argmax(1), value.detach() * 2};
  }
};

TEST(RecomputeTest, TakesBlocksThatChoose) {
  std::vector<std::unique_ptr<model::Block>> blocks;
  for (const char* name : {"stem", "head"}) blocks.push_back(std::make_unique<Chooser>(name));
  const model::Network network("chooser", std::move(blocks));
  const at::Tensor input = at::ones({2, 4}).cumsum(1).requires_grad_(true);
  const model::Bundle out = recomputed(network, 0, {input}, model::Mode::train);
  EXPECT_FALSE(out[1].requires_grad());
  (out[0].gather(1, out[1].unsqueeze(1)) * out[2].sum(1, true)).sum().backward();
  const at::Tensor gradient = input.grad();
  EXPECT_EQ(gradient.sum().item<double>(), 2 * 3 * 60) << gradient;
  EXPECT_EQ(network.parameters()[0].tensor.grad().item<double>(), 2 * 4 * 60);
}

// Told of every allocation of tensors on this thread.
class Peak : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device) override {
    alive_ += bytes;
    peak = std::max(peak, alive_);
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t peak = 0;

 private:
  int64_t alive_ = 0;
};

int64_t peak_of_a_pass(const model::Network& network, const at::Tensor& images, bool again) {
  const auto peak = std::make_shared<Peak>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, peak);
  model::Bundle values{images};
  for (size_t i = 0; i < network.blocks().size(); ++i) {
    values =
        again ? recomputed(network, i, values, model::Mode::train) : network.run(values, model::Mode::train, i, i + 1);
  }
  const at::Tensor loss = values[0].sum();
  const int64_t most = peak->peak;
  loss.backward();
  for (const auto& parameter : network.parameters()) at::Tensor(parameter.tensor).mutable_grad().reset();
  return most;
}

TEST(RecomputeTest, KeepsAFractionOfTheActivations) {
  at::set_num_threads(1);
  spec::Model model = model_of("vit_tiny_patch16_224");
  model.depth = 12;
  const auto network = model::make_network(model, 64, 7);
  const at::Tensor input = images(16, 64, 0).fields.at("image");
  const int64_t kept = peak_of_a_pass(network, input, false);
  const int64_t again = peak_of_a_pass(network, input, true);
  EXPECT_GT(again, 0);
  EXPECT_LT(5 * again, kept);
}

// Its trunk, pyramid and regions see the same maps: where their gradients meet, the order of the sums must not depend
// on what is recomputed. The choice of regions is drawn a second time.
class DetectorRecomputeTest : public testing::TestWithParam<const char*> {};
TEST_P(DetectorRecomputeTest, GivesTheSameBits) {
  const std::string name = GetParam();
  spec::Job job;
  job.task = name.starts_with("fastbox") ? spec::Task::detect : spec::Task::instances;
  job.model.name = name;
  job.model.classes = job.task == spec::Task::detect ? 2 : 3;
  if (name.find("resnet") != std::string::npos) job.model.width = 8;
  job.data.image_size = spec::ImageSize(64, 96);
  job.instances.slots = 4;
  job.instances.mask_size = 28;
  job.instances.proposals = 40;
  job.instances.anchor_samples = 32;
  job.instances.roi_slots = 16;
  const auto after_a_step = [&](const std::vector<std::string>& recompute) {
    at::manual_seed(5);
    at::set_num_threads(1);
    const auto group = comm::single_group();
    auto network = model::make_network(job);
    StepOptions options;
    options.training.recompute = recompute;
    options.objective = objective::make_objective(job);
    Step step(network, *group, options);
    const loader::Batch drawn = loader::draw_batch(job, 0, 3);
    const Samples samples = to_samples(drawn, at::kCPU);
    std::vector<at::Tensor> all{at::arange(1, at::kDouble).add(step.run(samples, 0.01).loss)};
    for (const auto& gradient : step.gradients()) all.push_back(gradient.clone());
    return all;
  };
  const auto plain = after_a_step({}), recomputed = after_a_step({"all"});
  ASSERT_EQ(plain.size(), recomputed.size());
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(at::equal(plain[i], recomputed[i])) << i;
}
INSTANTIATE_TEST_SUITE_P(Names, DetectorRecomputeTest,
                         testing::Values("maskrcnn_resnet18_fpn", "fastbox_resnet18", "fastbox_vgg16",
                                         "fastbox_googlenet"));

}  // namespace
}  // namespace lockstep::step
