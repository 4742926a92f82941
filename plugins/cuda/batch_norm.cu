// SPDX-License-Identifier: Apache-2.0
// Every kernel here waits for memory alone: a thread has eight channels and walks down the rows, four at once. Sums are
// added up in one order, whatever the GPU.
#include "plugins/cuda/batch_norm.h"

#include <algorithm>

#include "lockstep/forecast/kernel_grid.h"
#include "plugins/cuda/eights.cuh"
#include "plugins/cuda/fold.cuh"

namespace lockstep_cuda_internal {
namespace {

using lockstep::forecast::BatchNormGrid;

constexpr int kThreads = BatchNormGrid::kThreads;
constexpr int kAtOnce = BatchNormGrid::kAtOnce;

// Where a thread stands.
struct Place {
  int64_t row, step, rows;  // the first one, to the next, behind the last
  int channel, channels, apart;
  bool works;

  __device__ Place(const BatchNormGrid& grid) : rows(grid.rows), channels(grid.channels), apart(grid.rows_at_once) {
    const int across = static_cast<int>(threadIdx.x) % grid.vectors,
              down = static_cast<int>(threadIdx.x) / grid.vectors;
    channel = (static_cast<int>(blockIdx.y) * grid.vectors + across) * kEight;
    works = down < grid.rows_at_once && channel < channels;
    row = static_cast<int64_t>(blockIdx.x) * grid.rows_at_once * kAtOnce + down;
    step = static_cast<int64_t>(gridDim.x) * grid.rows_at_once * kAtOnce;
  }
};

// What is done to a value: y = x * scale + shift. Computed alike wherever it is needed.
struct Affine {
  float scale[kEight], shift[kEight];

  __device__ Affine(const float* weight, const float* bias, const float* mean, const float* inverse, int channel) {
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      scale[k] = __fmul_rn(weight[channel + k], inverse[channel + k]);
      shift[k] = __fmaf_rn(-mean[channel + k], scale[k], bias[channel + k]);
    }
  }
  __device__ float operator()(float x, int k) const {
    return __fmaf_rn(x, scale[k], shift[k]);
  }
};

// Adds up the two sums of each channel over the rows of the block: [block, 2, channels].
__device__ void put_sums(const BatchNormGrid& grid, const Place& place, const float (&first)[kEight],
                         const float (&second)[kEight], float* sums) {
  __shared__ float all[kThreads * 2 * kEight];
  if (place.works) {
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      all[threadIdx.x * 2 * kEight + k] = first[k];
      all[threadIdx.x * 2 * kEight + kEight + k] = second[k];
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < grid.vectors * 2 * kEight; i += kThreads) {
    const int vector = i / (2 * kEight), part = i % (2 * kEight);
    const int channel = (static_cast<int>(blockIdx.y) * grid.vectors + vector) * kEight + part % kEight;
    if (channel >= grid.channels) continue;
    float sum = 0;
    for (int row = 0; row < grid.rows_at_once; ++row) sum += all[(row * grid.vectors + vector) * 2 * kEight + part];
    sums[(static_cast<int64_t>(blockIdx.x) * 2 + part / kEight) * grid.channels + channel] = sum;
  }
}

// Around the first row of the input, so that a large mean takes no digits from the variance.
template <class Value>
__global__ void __launch_bounds__(kThreads)
    moments(const Value* __restrict__ input, float* __restrict__ sums, BatchNormGrid grid) {
  const Place place(grid);
  float first[kEight] = {}, second[kEight] = {};
  if (place.works) {
    float centre[kEight];
    unpack<Value>(load(input + place.channel), centre);
    for (int64_t row = place.row; row < place.rows; row += place.step) {
      uint4 raw[kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        const int64_t at = row + u * place.apart;
        if (at < place.rows) raw[u] = load(input + at * place.channels + place.channel);
      }
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (row + u * place.apart >= place.rows) continue;
        float values[kEight];
        unpack<Value>(raw[u], values);
#pragma unroll
        for (int k = 0; k < kEight; ++k) {
          const float off = values[k] - centre[k];
          first[k] += off;
          second[k] = fmaf(off, off, second[k]);
        }
      }
    }
  }
  put_sums(grid, place, first, second, sums);
}

template <class Value>
__global__ void finish_moments(BatchNormForward call, int blocks) {
  const int channels = static_cast<int>(call.shape.channels);
  const int channel = fold_column();
  float first, second;
  if (!fold(call.sums, blocks, channels, first, second)) return;
  const double rows = static_cast<double>(call.shape.rows);
  const double off = first / rows, variance = max(second / rows - off * off, 0.0);
  const double mean = static_cast<double>(static_cast<float>(static_cast<const Value*>(call.input)[channel])) + off;
  call.mean[channel] = static_cast<float>(mean);
  call.inverse[channel] = static_cast<float>(1 / sqrt(variance + static_cast<double>(call.epsilon)));
  const double share = call.momentum;
  call.running_mean[channel] = static_cast<float>((1 - share) * call.running_mean[channel] + share * mean);
  call.running_variance[channel] =
      static_cast<float>((1 - share) * call.running_variance[channel] + share * variance * rows / (rows - 1));
}

template <class Value, bool kAdded, bool kRelu>
__global__ void __launch_bounds__(kThreads) apply(BatchNormForward call, BatchNormGrid grid) {
  const Place place(grid);
  if (!place.works) return;
  const auto* __restrict__ input = static_cast<const Value*>(call.input);
  const auto* __restrict__ added = static_cast<const Value*>(call.added);
  auto* __restrict__ output = static_cast<Value*>(call.output);
  const Affine affine(call.weight, call.bias, call.mean, call.inverse, place.channel);
  for (int64_t row = place.row; row < place.rows; row += place.step) {
    uint4 raw[kAtOnce], raw_added[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const int64_t at = row + u * place.apart;
      if (at >= place.rows) continue;
      raw[u] = load(input + at * place.channels + place.channel);
      if constexpr (kAdded) raw_added[u] = load(added + at * place.channels + place.channel);
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const int64_t at = row + u * place.apart;
      if (at >= place.rows) continue;
      float values[kEight], more[kEight];
      unpack<Value>(raw[u], values);
      if constexpr (kAdded) unpack<Value>(raw_added[u], more);
      unsigned bits = 0;
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        float value = affine(values[k], k);
        if constexpr (kAdded) value += more[k];
        if constexpr (kRelu) {
          bits |= static_cast<unsigned>(value > 0) << k;
          value = value < 0 ? 0.0F : value;  // what is no number stays none
        }
        values[k] = value;
      }
      const int64_t index = at * place.channels + place.channel;
      store(output + index, pack<Value>(values));
      if constexpr (kAdded && kRelu) call.mask[index / kEight] = static_cast<uint8_t>(bits);
    }
  }
}

enum class Rectified { no, by_input, by_mask };

// The gradient that reaches the batch norm itself.
template <class Value, Rectified kRectified>
struct Reaching {
  Affine affine;

  __device__ void operator()(float (&gradient)[kEight], const float (&input)[kEight], unsigned bits) const {
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      if constexpr (kRectified == Rectified::by_input) gradient[k] = affine(input[k], k) > 0 ? gradient[k] : 0.0F;
      if constexpr (kRectified == Rectified::by_mask) gradient[k] = (bits >> k & 1U) != 0 ? gradient[k] : 0.0F;
    }
  }
};

// Sums of dL/dy and of dL/dy (x - mean).
template <class Value, Rectified kRectified>
__global__ void __launch_bounds__(kThreads) reduce(BatchNormBackward call, BatchNormGrid grid) {
  const Place place(grid);
  float first[kEight] = {}, second[kEight] = {};
  if (place.works) {
    const auto* __restrict__ gradient = static_cast<const Value*>(call.gradient);
    const auto* __restrict__ input = static_cast<const Value*>(call.input);
    const Reaching<Value, kRectified> reaching{{call.weight, call.bias, call.mean, call.inverse, place.channel}};
    float mean[kEight];
#pragma unroll
    for (int k = 0; k < kEight; ++k) mean[k] = call.mean[place.channel + k];
    for (int64_t row = place.row; row < place.rows; row += place.step) {
      uint4 raw[kAtOnce], raw_input[kAtOnce];
      unsigned bits[kAtOnce] = {};
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        const int64_t at = row + u * place.apart, index = at * place.channels + place.channel;
        if (at >= place.rows) continue;
        raw[u] = load(gradient + at * call.gradient_stride + place.channel);
        raw_input[u] = load(input + index);
        if constexpr (kRectified == Rectified::by_mask) bits[u] = call.mask[index / kEight];
      }
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (row + u * place.apart >= place.rows) continue;
        float pushed[kEight], values[kEight];
        unpack<Value>(raw[u], pushed);
        unpack<Value>(raw_input[u], values);
        reaching(pushed, values, bits[u]);
#pragma unroll
        for (int k = 0; k < kEight; ++k) {
          first[k] += pushed[k];
          second[k] = fmaf(pushed[k], values[k] - mean[k], second[k]);
        }
      }
    }
  }
  put_sums(grid, place, first, second, call.sums);
}

__global__ void finish_reduce(BatchNormBackward call, int blocks) {
  const int channels = static_cast<int>(call.shape.channels);
  const int channel = fold_column();
  float first, second;
  if (!fold(call.sums, blocks, channels, first, second)) return;
  call.of_bias[channel] = first;
  call.of_weight[channel] = second * call.inverse[channel];
}

// dL/dx = weight inverse (dL/dy - mean of dL/dy - (x - mean) inverse^2 mean of dL/dy (x - mean)).
template <class Value, Rectified kRectified>
__global__ void __launch_bounds__(kThreads) apply_backward(BatchNormBackward call, BatchNormGrid grid) {
  const Place place(grid);
  if (!place.works) return;
  const auto* __restrict__ gradient = static_cast<const Value*>(call.gradient);
  const auto* __restrict__ input = static_cast<const Value*>(call.input);
  auto* __restrict__ of_input = static_cast<Value*>(call.of_input);
  auto* __restrict__ of_added = static_cast<Value*>(call.of_added);
  const Reaching<Value, kRectified> reaching{{call.weight, call.bias, call.mean, call.inverse, place.channel}};
  float slope[kEight], offset[kEight];  // dL/dx = scale dL/dy + slope x + offset
#pragma unroll
  for (int k = 0; k < kEight; ++k) {
    const int channel = place.channel + k;
    const float scale = reaching.affine.scale[k], share = 1 / static_cast<float>(place.rows);
    slope[k] = -scale * call.inverse[channel] * call.of_weight[channel] * share;
    offset[k] = -scale * call.of_bias[channel] * share - slope[k] * call.mean[channel];
  }
  for (int64_t row = place.row; row < place.rows; row += place.step) {
    uint4 raw[kAtOnce], raw_input[kAtOnce];
    unsigned bits[kAtOnce] = {};
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const int64_t at = row + u * place.apart, index = at * place.channels + place.channel;
      if (at >= place.rows) continue;
      raw[u] = load(gradient + at * call.gradient_stride + place.channel);
      raw_input[u] = load(input + index);
      if constexpr (kRectified == Rectified::by_mask) bits[u] = call.mask[index / kEight];
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const int64_t at = row + u * place.apart, index = at * place.channels + place.channel;
      if (at >= place.rows) continue;
      float pushed[kEight], values[kEight];
      unpack<Value>(raw[u], pushed);
      unpack<Value>(raw_input[u], values);
      reaching(pushed, values, bits[u]);
      if constexpr (kRectified == Rectified::by_mask) store(of_added + index, pack<Value>(pushed));
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        values[k] = fmaf(reaching.affine.scale[k], pushed[k], fmaf(slope[k], values[k], offset[k]));
      }
      store(of_input + index, pack<Value>(values));
    }
  }
}

template <class Value>
void run_apply(const BatchNormForward& call, const BatchNormGrid& grid, dim3 blocks, cudaStream_t stream) {
  if (call.added && call.relu) return apply<Value, true, true><<<blocks, kThreads, 0, stream>>>(call, grid);
  if (call.added) return apply<Value, true, false><<<blocks, kThreads, 0, stream>>>(call, grid);
  if (call.relu) return apply<Value, false, true><<<blocks, kThreads, 0, stream>>>(call, grid);
  apply<Value, false, false><<<blocks, kThreads, 0, stream>>>(call, grid);
}

template <class Value, Rectified kRectified>
void run_backward(const BatchNormBackward& call, const BatchNormGrid& grid, dim3 blocks, cudaStream_t stream) {
  reduce<Value, kRectified><<<blocks, kThreads, 0, stream>>>(call, grid);
  finish_reduce<<<fold_blocks(call.shape.channels), fold_threads(), 0, stream>>>(call, grid.blocks_down);
  apply_backward<Value, kRectified><<<blocks, kThreads, 0, stream>>>(call, grid);
}

dim3 blocks_of(const BatchNormGrid& grid) {
  return dim3(static_cast<unsigned>(grid.blocks_down), static_cast<unsigned>(grid.blocks_across));
}

}  // namespace

void batch_norm(const BatchNormForward& call, Number number, cudaStream_t stream) {
  const BatchNormGrid grid(call.shape.rows, call.shape.channels);
  for_16_bit(number, [&]<class Value>(Value*) {
    moments<<<blocks_of(grid), kThreads, 0, stream>>>(static_cast<const Value*>(call.input), call.sums, grid);
    finish_moments<Value><<<fold_blocks(call.shape.channels), fold_threads(), 0, stream>>>(call, grid.blocks_down);
    run_apply<Value>(call, grid, blocks_of(grid), stream);
  });
  check_launch("batch_norm");
}

void batch_norm_backward(const BatchNormBackward& call, Number number, cudaStream_t stream) {
  const BatchNormGrid grid(call.shape.rows, call.shape.channels);
  const dim3 blocks = blocks_of(grid);
  for_16_bit(number, [&]<class Value>(Value*) {
    if (call.mask) return run_backward<Value, Rectified::by_mask>(call, grid, blocks, stream);
    if (call.relu) return run_backward<Value, Rectified::by_input>(call, grid, blocks, stream);
    run_backward<Value, Rectified::no>(call, grid, blocks, stream);
  });
  check_launch("batch_norm_backward");
}

}  // namespace lockstep_cuda_internal
