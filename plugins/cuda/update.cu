// SPDX-License-Identifier: Apache-2.0
// One launch takes up to 48 layers: their list travels as its argument, and a block finds its chunk in it. So nothing
// is uploaded, and a captured launch keeps its list.
#include "plugins/cuda/update.h"

#include <algorithm>

#include "lockstep/kernel/update_grid.h"
#include "plugins/cuda/eights.cuh"

namespace lockstep_cuda_internal {
namespace {

using namespace lockstep::kernel;

constexpr int kThreads = UpdateGrid::kThreads;
constexpr int kVector = UpdateGrid::kVector;

struct LayerList {
  UpdateLayer layers[UpdateGrid::kLayers];
  int count;
};

// Which layer, and which elements of it, this block has.
struct Chunk {
  const UpdateLayer* layer;
  int64_t begin, end;

  __device__ explicit Chunk(const LayerList& list) {
    int low = 0, high = list.count - 1;
    const int block = static_cast<int>(blockIdx.x);
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (list.layers[middle].first_block <= block) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    layer = &list.layers[low];
    begin = static_cast<int64_t>(block - layer->first_block) * UpdateGrid::kChunk;
    end = min(begin + UpdateGrid::kChunk, layer->count);
  }
};

__device__ float value_at(const void* data, Number number, int64_t at) {
  if (number == Number::bf16) return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[at]);
  if (number == Number::fp16) return __half2float(static_cast<const __half*>(data)[at]);
  return static_cast<const float*>(data)[at];
}

__device__ void read_four(const void* data, Number number, int64_t at, float (&to)[kVector]) {
  if (number == Number::fp32) {
    const float4 four = *reinterpret_cast<const float4*>(static_cast<const float*>(data) + at);
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
    return;
  }
  const uint2 raw = *reinterpret_cast<const uint2*>(static_cast<const uint16_t*>(data) + at);
  const unsigned words[2] = {raw.x, raw.y};
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (number == Number::bf16) {
      to[2 * i] = __uint_as_float(words[i] << 16);
      to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000U);
    } else {
      const float2 pair = __half22float2(*reinterpret_cast<const __half2*>(&words[i]));
      to[2 * i] = pair.x;
      to[2 * i + 1] = pair.y;
    }
  }
}

__device__ void put_value(void* data, Number number, int64_t at, float value) {
  if (number == Number::bf16) {
    static_cast<__nv_bfloat16*>(data)[at] = __float2bfloat16_rn(value);
  } else if (number == Number::fp16) {
    static_cast<__half*>(data)[at] = __float2half_rn(value);
  } else {
    static_cast<float*>(data)[at] = value;
  }
}

__device__ void write_four(void* data, Number number, int64_t at, const float (&from)[kVector]) {
  if (number == Number::fp32) {
    *reinterpret_cast<float4*>(static_cast<float*>(data) + at) = {from[0], from[1], from[2], from[3]};
    return;
  }
  unsigned words[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (number == Number::bf16) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(from[2 * i], from[2 * i + 1]);
      words[i] = *reinterpret_cast<const unsigned*>(&pair);
    } else {
      const __half2 pair = __floats2half2_rn(from[2 * i], from[2 * i + 1]);
      words[i] = *reinterpret_cast<const unsigned*>(&pair);
    }
  }
  *reinterpret_cast<uint2*>(static_cast<uint16_t*>(data) + at) = {words[0], words[1]};
}

struct Sgd {
  float lr, weight_decay, momentum;
  bool nesterov, moves;
  static constexpr bool kTwo = false;

  __device__ Sgd(const UpdateRule& rule, const float* numbers, bool has_first)
      : lr(rule.rate * numbers[kLearningRate]),
        weight_decay(rule.weight_decay),
        momentum(rule.momentum),
        nesterov(rule.nesterov),
        moves(has_first) {}
  __device__ void operator()(float& weight, float gradient, float& first, float& /*second*/) const {
    gradient = fmaf(weight_decay, weight, gradient);
    if (moves) {
      first = fmaf(momentum, first, gradient);
      gradient = nesterov ? fmaf(momentum, first, gradient) : first;
    }
    weight = fmaf(-lr, gradient, weight);
  }
};

struct Adamw {
  float kept, step, beta1, beta2, epsilon, correction;
  static constexpr bool kTwo = true;

  __device__ Adamw(const UpdateRule& rule, const float* numbers, bool /*has_first*/)
      : kept(1 - rule.rate * numbers[kLearningRate] * rule.weight_decay),
        step(rule.rate * numbers[kLearningRate] / numbers[kFirstCorrection]),
        beta1(rule.beta1),
        beta2(rule.beta2),
        epsilon(rule.epsilon),
        correction(numbers[kSecondCorrection]) {}
  __device__ void operator()(float& weight, float gradient, float& first, float& second) const {
    first = fmaf(beta1, first, (1 - beta1) * gradient);
    second = fmaf(beta2, second, (1 - beta2) * gradient * gradient);
    weight = fmaf(weight, kept, -step * first / (sqrtf(second) / correction + epsilon));
  }
};

__device__ float ready(float gradient, float factor, float limit) {
  const float scaled = gradient * factor;
  return limit > 0 ? fminf(fmaxf(scaled, -limit), limit) : scaled;
}

template <class Optimizer>
__global__ void __launch_bounds__(kThreads)
    update_kernel(const __grid_constant__ LayerList list, UpdateRule rule, const float* __restrict__ numbers) {
  if (numbers[kTaken] == 0) return;
  const Chunk chunk(list);
  const UpdateLayer& layer = *chunk.layer;
  const Optimizer optimizer(rule, numbers, layer.first != nullptr);
  const float factor = numbers[kGradientFactor];
  for (int64_t at = chunk.begin + static_cast<int64_t>(threadIdx.x) * kVector; at < chunk.end;
       at += kThreads * kVector) {
    float weight[kVector], gradient[kVector], first[kVector] = {}, second[kVector] = {};
    if (layer.whole && at + kVector <= chunk.end) {
      read_four(layer.weight, Number::fp32, at, weight);
      read_four(layer.gradient, layer.gradient_number, at, gradient);
      if (layer.first) read_four(layer.first, Number::fp32, at, first);
      if constexpr (Optimizer::kTwo) read_four(layer.second, Number::fp32, at, second);
#pragma unroll
      for (int k = 0; k < kVector; ++k) {
        optimizer(weight[k], ready(gradient[k], factor, rule.clip_value), first[k], second[k]);
      }
      write_four(layer.weight, Number::fp32, at, weight);
      if (layer.first) write_four(layer.first, Number::fp32, at, first);
      if constexpr (Optimizer::kTwo) write_four(layer.second, Number::fp32, at, second);
      if (layer.copy) write_four(layer.copy, layer.copy_number, at, weight);
      continue;
    }
    for (int64_t i = at; i < min(at + kVector, chunk.end); ++i) {
      float one = layer.weight[i], moment = layer.first ? layer.first[i] : 0.0F, other = 0;
      if constexpr (Optimizer::kTwo) other = layer.second[i];
      optimizer(one, ready(value_at(layer.gradient, layer.gradient_number, i), factor, rule.clip_value), moment, other);
      layer.weight[i] = one;
      if (layer.first) layer.first[i] = moment;
      if constexpr (Optimizer::kTwo) layer.second[i] = other;
      if (layer.copy) put_value(layer.copy, layer.copy_number, i, one);
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    average_kernel(const __grid_constant__ LayerList list, const float* __restrict__ numbers) {
  if (numbers[kAveraged] == 0) return;
  const Chunk chunk(list);
  const float share = numbers[kAverageShare];
  float* averages = chunk.layer->weight;
  const auto* values = static_cast<const float*>(chunk.layer->gradient);
  for (int64_t at = chunk.begin + static_cast<int64_t>(threadIdx.x) * kVector; at < chunk.end;
       at += kThreads * kVector) {
    if (chunk.layer->whole && at + kVector <= chunk.end) {
      float average[kVector], value[kVector];
      read_four(averages, Number::fp32, at, average);
      read_four(values, Number::fp32, at, value);
#pragma unroll
      for (int k = 0; k < kVector; ++k) average[k] = fmaf(share, value[k] - average[k], average[k]);
      write_four(averages, Number::fp32, at, average);
      continue;
    }
    for (int64_t i = at; i < min(at + kVector, chunk.end); ++i) {
      averages[i] = fmaf(share, values[i] - averages[i], averages[i]);
    }
  }
}

// The sum of what the threads have, in one order; valid in the first thread.
template <class Value, int kCount>
__device__ Value add_up(Value mine) {
  __shared__ Value all[kCount];
  all[threadIdx.x] = mine;
  __syncthreads();
#pragma unroll
  for (int half = kCount / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.x) < half) all[threadIdx.x] += all[threadIdx.x + half];
    __syncthreads();
  }
  return all[0];
}

__global__ void __launch_bounds__(kThreads)
    squares_kernel(const __grid_constant__ LayerList list, float* __restrict__ partial) {
  const Chunk chunk(list);
  const UpdateLayer& layer = *chunk.layer;
  float sums[kVector] = {};
  for (int64_t at = chunk.begin + static_cast<int64_t>(threadIdx.x) * kVector; at < chunk.end;
       at += kThreads * kVector) {
    float gradient[kVector] = {};
    if (layer.whole && at + kVector <= chunk.end) {
      read_four(layer.gradient, layer.gradient_number, at, gradient);
    } else {
#pragma unroll
      for (int k = 0; k < kVector; ++k) {
        if (at + k < chunk.end) gradient[k] = value_at(layer.gradient, layer.gradient_number, at + k);
      }
    }
#pragma unroll
    for (int k = 0; k < kVector; ++k) sums[k] = fmaf(gradient[k], gradient[k], sums[k]);
  }
  const float sum = add_up<float, kThreads>((sums[0] + sums[1]) + (sums[2] + sums[3]));
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

constexpr int kFinishThreads = 1024;

__global__ void __launch_bounds__(kFinishThreads)
    finish_norm(const float* __restrict__ partial, int64_t count, float* __restrict__ norm) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kFinishThreads) sum += static_cast<double>(partial[i]);
  const double all = add_up<double, kFinishThreads>(sum);
  if (threadIdx.x == 0) *norm = static_cast<float>(sqrt(all));
}

__global__ void judge_kernel(JudgeCall call) {
  const float inverse = call.scale ? 1 / *call.scale : 1.0F, raw = *call.norm;
  float factor = inverse * call.numbers[kRowsFactor];
  if (call.clip_norm > 0) factor *= fminf(1.0F, call.clip_norm / (raw * factor + 1e-6F));
  const bool taken = isfinite(call.totals[0]) && isfinite(raw) && call.numbers[kRowsFactor] > 0;
  call.numbers[kGradientFactor] = factor;
  call.numbers[kTaken] = taken ? 1 : 0;
  call.numbers[kAveraged] = taken && *call.finite ? 1 : 0;
  for (int i = 0; i < call.num_totals; ++i) call.report[i] = call.totals[i];
  call.report[call.num_totals] = static_cast<double>(raw);
  call.report[call.num_totals + 1] = *call.finite ? 0 : 1;
}

// Calls `launch` with each list, the number of its blocks, and the blocks before it.
template <class Launch>
void for_lists(std::span<UpdateLayer> layers, const Launch& launch) {
  int64_t before = 0;
  for (size_t start = 0; start < layers.size(); start += UpdateGrid::kLayers) {
    LayerList list{};
    int64_t blocks = 0;
    const size_t end = std::min(start + UpdateGrid::kLayers, layers.size());
    for (size_t i = start; i < end; ++i) {
      if (layers[i].count == 0) continue;
      UpdateLayer layer = layers[i];
      layer.first_block = static_cast<int>(blocks);
      blocks += UpdateGrid::chunks(layer.count);
      list.layers[list.count++] = layer;
    }
    if (blocks > 0) launch(list, static_cast<unsigned>(blocks), before);
    before += blocks;
  }
}

template <class Optimizer>
void update(std::span<UpdateLayer> layers, const UpdateRule& rule, const float* numbers, cudaStream_t stream) {
  for_lists(layers, [&](const LayerList& list, unsigned blocks, int64_t /*before*/) {
    update_kernel<Optimizer><<<blocks, kThreads, 0, stream>>>(list, rule, numbers);
  });
}

}  // namespace

void sgd_step(std::span<UpdateLayer> layers, const UpdateRule& rule, const float* numbers, cudaStream_t stream) {
  update<Sgd>(layers, rule, numbers, stream);
  check_launch("sgd_step");
}

void adamw_step(std::span<UpdateLayer> layers, const UpdateRule& rule, const float* numbers, cudaStream_t stream) {
  update<Adamw>(layers, rule, numbers, stream);
  check_launch("adamw_step");
}

void gradient_norm(std::span<UpdateLayer> layers, float* partial, float* norm, cudaStream_t stream) {
  int64_t count = 0;
  for_lists(layers, [&](const LayerList& list, unsigned blocks, int64_t before) {
    squares_kernel<<<blocks, kThreads, 0, stream>>>(list, partial + before);
    count = before + blocks;
  });
  finish_norm<<<1, kFinishThreads, 0, stream>>>(partial, count, norm);
  check_launch("gradient_norm");
}

void follow_average(std::span<UpdateLayer> layers, const float* numbers, cudaStream_t stream) {
  for_lists(layers, [&](const LayerList& list, unsigned blocks, int64_t /*before*/) {
    average_kernel<<<blocks, kThreads, 0, stream>>>(list, numbers);
  });
  check_launch("follow_average");
}

void judge_step(const JudgeCall& call, cudaStream_t stream) {
  judge_kernel<<<1, 1, 0, stream>>>(call);
  check_launch("judge_step");
}

}  // namespace lockstep_cuda_internal
