// SPDX-License-Identifier: Apache-2.0
// What comes behind the gradients of a step, on a GPU: against the CPU's references.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/kernel/update.h"

namespace lockstep::kernel {
namespace {

const at::Device kGpu(at::kCUDA, 0);

double apart(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor one = a.to(at::kCPU).to(at::kDouble), other = b.to(at::kDouble);
  return ((one - other).norm() / (other.norm() + 1e-30)).item<double>();
}

Tensors there(const Tensors& here) {
  Tensors all;
  for (const at::Tensor& tensor : here) all.push_back(tensor.to(kGpu));
  return all;
}

// More layers than a launch takes; sizes that no vector divides; more than a chunk; one that does not stand on 16
// bytes.
UpdatedLayers layers_of(bool two, at::ScalarType narrow) {
  UpdatedLayers layers;
  for (int64_t i = 0; i < 2 * UpdateGrid::kLayers + 5; ++i) {
    const int64_t count = i == 7 ? 3 * UpdateGrid::kChunk + 5 : 1 + i * 13;
    const bool copied = i % 2 == 0;
    layers.weights.push_back(at::randn({count}));
    layers.gradients.push_back(at::randn({count}).to(copied ? narrow : at::kFloat));
    layers.first.push_back(at::randn({count}) * 0.1);
    if (two) layers.second.push_back(at::randn({count}).pow(2));
    layers.copies.push_back(copied ? at::zeros({count}, narrow) : at::empty({0}));
  }
  layers.rate = 0.7;
  layers.weight_decay = 0.05;
  return layers;
}

UpdatedLayers there(const UpdatedLayers& here) {
  UpdatedLayers all = here;
  for (Tensors* list : {&all.weights, &all.gradients, &all.first, &all.second, &all.copies}) *list = there(*list);
  // As a part of a larger tensor may lie.
  const at::Tensor shifted = at::empty({all.gradients[9].numel() + 1}, all.gradients[9].options());
  shifted.narrow(0, 1, all.gradients[9].numel()).copy_(all.gradients[9]);
  all.gradients[9] = shifted.narrow(0, 1, all.gradients[9].numel());
  return all;
}

at::Tensor numbers_of(double taken) {
  at::Tensor numbers = at::zeros({kStepNumbers});
  auto* values = numbers.mutable_data_ptr<float>();
  values[kLearningRate] = 0.05F;
  values[kRowsFactor] = 1;
  values[kFirstCorrection] = 0.271F;
  values[kSecondCorrection] = 0.0547F;
  values[kAverageShare] = 0.25F;
  values[kGradientFactor] = 0.5F;
  values[kTaken] = values[kAveraged] = static_cast<float>(taken);
  return numbers;
}

void expect_layers(const UpdatedLayers& gpu, const UpdatedLayers& cpu) {
  for (size_t i = 0; i < cpu.weights.size(); ++i) {
    EXPECT_LT(apart(gpu.weights[i], cpu.weights[i]), 1e-6) << i;
    EXPECT_LT(apart(gpu.first[i], cpu.first[i]), 1e-6) << i;
    if (!cpu.second.empty()) {
      EXPECT_LT(apart(gpu.second[i], cpu.second[i]), 1e-6) << i;
    }
    if (cpu.copies[i].numel() > 0) {
      EXPECT_TRUE(gpu.copies[i].equal(gpu.weights[i].to(gpu.copies[i].scalar_type()))) << i;
    }
  }
}

TEST(UpdatesOnGpuTest, Sgd) {
  for (const auto narrow : {at::kBFloat16, at::kHalf}) {
    for (const bool nesterov : {false, true}) {
      UpdatedLayers cpu = layers_of(false, narrow);
      cpu.clip_value = 0.8;
      const UpdatedLayers gpu = there(cpu);
      sgd_step(cpu, numbers_of(1), {.momentum = 0.9, .nesterov = nesterov});
      sgd_step(gpu, numbers_of(1).to(kGpu), {.momentum = 0.9, .nesterov = nesterov});
      expect_layers(gpu, cpu);
    }
  }
}

TEST(UpdatesOnGpuTest, Adamw) {
  for (const auto narrow : {at::kBFloat16, at::kHalf}) {
    const UpdatedLayers cpu = layers_of(true, narrow), gpu = there(cpu);
    adamw_step(cpu, numbers_of(1), {});
    adamw_step(gpu, numbers_of(1).to(kGpu), {});
    expect_layers(gpu, cpu);
  }
}

TEST(UpdatesOnGpuTest, NothingHappensWhereTheStepIsNotTaken) {
  const UpdatedLayers cpu = layers_of(true, at::kHalf), gpu = there(cpu);
  adamw_step(gpu, numbers_of(0).to(kGpu), {});
  follow_average(gpu.weights, gpu.first, numbers_of(0).to(kGpu));
  for (size_t i = 0; i < cpu.weights.size(); ++i) EXPECT_TRUE(gpu.weights[i].to(at::kCPU).equal(cpu.weights[i])) << i;
}

TEST(UpdatesOnGpuTest, Average) {
  const UpdatedLayers cpu = layers_of(true, at::kHalf), gpu = there(cpu);
  follow_average(cpu.weights, cpu.first, numbers_of(1));
  follow_average(gpu.weights, gpu.first, numbers_of(1).to(kGpu));
  for (size_t i = 0; i < cpu.weights.size(); ++i) EXPECT_LT(apart(gpu.weights[i], cpu.weights[i]), 1e-6) << i;
}

TEST(UpdatesOnGpuTest, NormTwiceWithTheSameBits) {
  const UpdatedLayers cpu = layers_of(false, at::kBFloat16), gpu = there(cpu);
  const at::Tensor norm = gradient_norm(gpu.gradients);
  EXPECT_LT(apart(norm, gradient_norm(cpu.gradients)), 1e-5);
  EXPECT_TRUE(norm.equal(gradient_norm(gpu.gradients)));
}

TEST(UpdatesOnGpuTest, Judge) {
  for (const double loss : {1.5, std::nan("")}) {
    for (const float norm : {8.0F, INFINITY}) {
      for (const bool finite : {false, true}) {
        Judged one{.totals = at::tensor({loss, 2.0}, at::kDouble),
                   .norm = at::tensor(norm),
                   .finite = at::scalar_tensor(finite, at::kBool),
                   .scale = at::tensor(2.0F),
                   .clip_norm = 1};
        at::Tensor numbers = numbers_of(0), others = numbers_of(0).to(kGpu);
        const at::Tensor wanted = judge_step(one, numbers);
        for (at::Tensor* tensor : {&one.totals, &one.norm, &one.finite, &one.scale}) *tensor = tensor->to(kGpu);
        const at::Tensor report = judge_step(one, others).to(at::kCPU);
        EXPECT_EQ(report[3].item<double>(), wanted[3].item<double>());
        EXPECT_EQ(report[2].item<double>(), wanted[2].item<double>());
        EXPECT_EQ(report[1].item<double>(), 2);
        const at::Tensor said = others.to(at::kCPU);
        EXPECT_EQ(said[kTaken].item<float>(), numbers[kTaken].item<float>());
        EXPECT_EQ(said[kAveraged].item<float>(), numbers[kAveraged].item<float>());
        if (std::isfinite(norm)) {
          EXPECT_NEAR(said[kGradientFactor].item<float>(), numbers[kGradientFactor].item<float>(), 1e-6);
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::kernel
