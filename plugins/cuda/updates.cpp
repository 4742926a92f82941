// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels of lockstep/kernel/update.h, registered when this library is opened. lockstep/trace/updates.cpp
// tells of the same tensors.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <optional>
#include <vector>

#include "lockstep/kernel/update_grid.h"
#include "plugins/cuda/update.h"

namespace {

using namespace lockstep_cuda_internal;
using at::Tensor;
using at::TensorList;
using lockstep::kernel::UpdateGrid;

Number number_of(const Tensor& tensor) {
  const auto type = tensor.scalar_type();
  TORCH_CHECK(type == at::kFloat || type == at::kBFloat16 || type == at::kHalf,
              "updates take fp32, bf16 and fp16, not ", type);
  return type == at::kFloat ? Number::fp32 : type == at::kBFloat16 ? Number::bf16 : Number::fp16;
}

bool stands_on(const void* pointer, uintptr_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

float* floats(const Tensor& tensor) {
  return tensor.mutable_data_ptr<float>();
}

std::vector<UpdateLayer> layers_of(TensorList weights, TensorList gradients, TensorList first, TensorList second,
                                   TensorList copies) {
  std::vector<UpdateLayer> layers;
  layers.reserve(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    TORCH_CHECK(gradients[i].numel() == weights[i].numel(), "a gradient has the elements of its weight");
    UpdateLayer layer{};
    layer.weight = floats(weights[i]);
    layer.gradient = gradients[i].const_data_ptr();
    layer.first = first.empty() ? nullptr : floats(first[i]);
    layer.second = second.empty() ? nullptr : floats(second[i]);
    const bool copied = !copies.empty() && copies[i].numel() > 0;
    layer.copy = copied ? copies[i].mutable_data_ptr() : nullptr;
    layer.count = weights[i].numel();
    layer.gradient_number = number_of(gradients[i]);
    layer.copy_number = copied ? number_of(copies[i]) : Number::fp32;
    layer.whole = stands_on(layer.weight, 16) && stands_on(layer.gradient, 16) && stands_on(layer.first, 16) &&
                  stands_on(layer.second, 16) && stands_on(layer.copy, 16);
    layers.push_back(layer);
  }
  return layers;
}

Tensor gradient_norm_cuda(TensorList gradients) {
  const c10::cuda::CUDAGuard guard(gradients[0].device());
  std::vector<UpdateLayer> layers;
  layers.reserve(gradients.size());
  int64_t chunks = 0;
  for (const Tensor& gradient : gradients) {
    UpdateLayer layer{};
    layer.gradient = gradient.const_data_ptr();
    layer.count = gradient.numel();
    layer.gradient_number = number_of(gradient);
    layer.whole = stands_on(layer.gradient, 16);
    chunks += UpdateGrid::chunks(layer.count);
    layers.push_back(layer);
  }
  const auto options = gradients[0].options().dtype(at::kFloat);
  Tensor norm = at::empty({}, options);
  const Tensor partial = at::empty({chunks}, options);
  gradient_norm(layers, floats(partial), floats(norm), c10::cuda::getCurrentCUDAStream());
  return norm;
}

Tensor judge_step_cuda(const Tensor& totals, const Tensor& norm, const Tensor& finite,
                       const std::optional<Tensor>& scale, const Tensor& numbers, double clip_norm) {
  const c10::cuda::CUDAGuard guard(totals.device());
  Tensor report = at::empty({totals.numel() + 2}, totals.options());
  judge_step({.totals = totals.const_data_ptr<double>(),
              .num_totals = static_cast<int>(totals.numel()),
              .norm = norm.const_data_ptr<float>(),
              .finite = finite.const_data_ptr<bool>(),
              .scale = scale ? scale->const_data_ptr<float>() : nullptr,
              .clip_norm = static_cast<float>(clip_norm),
              .numbers = floats(numbers),
              .report = report.mutable_data_ptr<double>()},
             c10::cuda::getCurrentCUDAStream());
  return report;
}

void sgd_step_cuda(TensorList weights, TensorList gradients, TensorList momenta, TensorList copies,
                   const Tensor& numbers, double rate, double weight_decay, double clip_value, double momentum,
                   bool nesterov) {
  const c10::cuda::CUDAGuard guard(numbers.device());
  auto layers = layers_of(weights, gradients, momenta, {}, copies);
  sgd_step(layers,
           {.rate = static_cast<float>(rate),
            .weight_decay = static_cast<float>(weight_decay),
            .clip_value = static_cast<float>(clip_value),
            .momentum = static_cast<float>(momentum),
            .nesterov = nesterov},
           floats(numbers), c10::cuda::getCurrentCUDAStream());
}

void adamw_step_cuda(TensorList weights, TensorList gradients, TensorList first, TensorList second, TensorList copies,
                     const Tensor& numbers, double rate, double weight_decay, double clip_value, double beta1,
                     double beta2, double epsilon) {
  const c10::cuda::CUDAGuard guard(numbers.device());
  auto layers = layers_of(weights, gradients, first, second, copies);
  adamw_step(layers,
             {.rate = static_cast<float>(rate),
              .weight_decay = static_cast<float>(weight_decay),
              .clip_value = static_cast<float>(clip_value),
              .beta1 = static_cast<float>(beta1),
              .beta2 = static_cast<float>(beta2),
              .epsilon = static_cast<float>(epsilon)},
             floats(numbers), c10::cuda::getCurrentCUDAStream());
}

void follow_average_cuda(TensorList averages, TensorList values, const Tensor& numbers) {
  const c10::cuda::CUDAGuard guard(numbers.device());
  auto layers = layers_of(averages, values, {}, {}, {});
  for (const UpdateLayer& layer : layers) {
    TORCH_CHECK(layer.gradient_number == Number::fp32, "a moving average follows fp32 values");
  }
  follow_average(layers, floats(numbers), c10::cuda::getCurrentCUDAStream());
}

}  // namespace

TORCH_LIBRARY_IMPL(lockstep, CUDA, library) {
  library.impl("gradient_norm", &gradient_norm_cuda);
  library.impl("judge_step", &judge_step_cuda);
  library.impl("sgd_step", &sgd_step_cuda);
  library.impl("adamw_step", &adamw_step_cuda);
  library.impl("follow_average", &follow_average_cuda);
}
