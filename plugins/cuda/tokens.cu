// SPDX-License-Identifier: Apache-2.0
// A block has whole rows, a thread eight columns of them; a few rows are in flight at once.
#include "plugins/cuda/tokens.h"

#include "lockstep/forecast/kernel_grid.h"
#include "plugins/cuda/eights.cuh"
#include "plugins/cuda/fold.cuh"

namespace lockstep_cuda_internal {
namespace {

using lockstep::forecast::BatchNormGrid;
using lockstep::forecast::TokenGrid;

constexpr int kAtOnce = TokenGrid::kAtOnce;
constexpr int kBack = TokenGrid::kBackwardAtOnce;
constexpr int kMostThreads = TokenGrid::kMostWidth / TokenGrid::kVector;
constexpr int kWarp = 32;

// Each of the values summed over the block: every thread gets the sums.
template <int kCount>
__device__ void sum_over_block(float (&values)[kCount], float (&shared)[kMostThreads / kWarp][kCount]) {
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
#pragma unroll
    for (int offset = kWarp / 2; offset > 0; offset /= 2) values[i] += __shfl_xor_sync(~0U, values[i], offset);
  }
  __syncthreads();  // nobody reads earlier sums any more
  if (lane == 0) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) shared[warp][i] = values[i];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    values[i] = 0;
    for (unsigned w = 0; w < warps; ++w) values[i] += shared[w][i];
  }
}

template <class Value, bool kBranch>
__global__ void __launch_bounds__(kMostThreads) layer_norm_kernel(LayerNormForward call) {
  __shared__ float shared[kMostThreads / kWarp][kAtOnce];
  const int column = static_cast<int>(threadIdx.x) * kEight;
  const bool works = column < call.width;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kAtOnce;
  const auto* __restrict__ input = static_cast<const Value*>(call.input);
  const auto* __restrict__ branch = static_cast<const Value*>(call.branch);
  float values[kAtOnce][kEight] = {}, sums[kAtOnce] = {};
  uint4 raw[kAtOnce], raw_branch[kAtOnce];
#pragma unroll
  for (int u = 0; u < kAtOnce; ++u) {
    if (!works || first + u >= call.rows) continue;
    raw[u] = load(input + (first + u) * call.width + column);
    if constexpr (kBranch) raw_branch[u] = load(branch + (first + u) * call.width + column);
  }
#pragma unroll
  for (int u = 0; u < kAtOnce; ++u) {
    if (!works || first + u >= call.rows) continue;
    unpack<Value>(raw[u], values[u]);
    if constexpr (kBranch) {
      float more[kEight];
      unpack<Value>(raw_branch[u], more);
#pragma unroll
      for (int k = 0; k < kEight; ++k) values[u][k] += more[k];
      const uint4 packed = pack<Value>(values[u]);
      store(static_cast<Value*>(call.sum) + (first + u) * call.width + column, packed);
      unpack<Value>(packed, values[u]);  // what is normalised is what others see
    }
#pragma unroll
    for (int k = 0; k < kEight; ++k) sums[u] += values[u][k];
  }
  sum_over_block(sums, shared);
  float mean[kAtOnce], squares[kAtOnce] = {};
#pragma unroll
  for (int u = 0; u < kAtOnce; ++u) {
    mean[u] = sums[u] / static_cast<float>(call.width);
    if (!works) continue;
#pragma unroll
    for (int k = 0; k < kEight; ++k) squares[u] = fmaf(values[u][k] - mean[u], values[u][k] - mean[u], squares[u]);
  }
  sum_over_block(squares, shared);
  if (!works) return;
  float weight[kEight], bias[kEight];
#pragma unroll
  for (int k = 0; k < kEight; ++k) {
    weight[k] = call.weight[column + k];
    bias[k] = call.bias[column + k];
  }
#pragma unroll
  for (int u = 0; u < kAtOnce; ++u) {
    if (first + u >= call.rows) continue;
    const float inverse = rsqrtf(squares[u] / static_cast<float>(call.width) + call.epsilon);
#pragma unroll
    for (int k = 0; k < kEight; ++k) values[u][k] = fmaf((values[u][k] - mean[u]) * inverse, weight[k], bias[k]);
    store(static_cast<Value*>(call.normalized) + (first + u) * call.width + column, pack<Value>(values[u]));
    if (column != 0) continue;
    call.mean[first + u] = mean[u];
    call.inverse[first + u] = inverse;
  }
}

template <class Value, bool kSum>
__global__ void __launch_bounds__(kMostThreads, 2) layer_norm_backward_kernel(LayerNormBackward call) {
  __shared__ float shared[kMostThreads / kWarp][2 * kBack];
  const int column = static_cast<int>(threadIdx.x) * kEight;
  const bool works = column < call.width;
  const auto* __restrict__ of_sum = static_cast<const Value*>(call.of_sum);
  const auto* __restrict__ gradient = static_cast<const Value*>(call.of_normalized);
  const auto* __restrict__ sum = static_cast<const Value*>(call.sum);
  float weight[kEight] = {}, of_weight[kEight] = {}, of_bias[kEight] = {};
  if (works) {
#pragma unroll
    for (int k = 0; k < kEight; ++k) weight[k] = call.weight[column + k];
  }
  uint4 raw[kBack], raw_sum[kBack], raw_passed[kBack];
  const auto fetch = [&](int64_t from) {
#pragma unroll
    for (int u = 0; u < kBack; ++u) {
      if (!works || from + u >= call.rows) continue;
      const int64_t at = (from + u) * call.width + column;
      raw[u] = load(gradient + at);
      raw_sum[u] = load(sum + at);
      if constexpr (kSum) raw_passed[u] = load(of_sum + at);
    }
  };
  const int64_t step = static_cast<int64_t>(gridDim.x) * kBack;
  fetch(static_cast<int64_t>(blockIdx.x) * kBack);
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kBack; first < call.rows; first += step) {
    float inverse[kBack], totals[2 * kBack] = {};
    uint4 passing[kBack];
    float pushed[kBack][kEight] = {}, standard[kBack][kEight] = {};
#pragma unroll
    for (int u = 0; u < kBack; ++u) {
      if (!works || first + u >= call.rows) continue;
      const float mean = call.mean[first + u];
      inverse[u] = call.inverse[first + u];
      unpack<Value>(raw[u], pushed[u]);
      unpack<Value>(raw_sum[u], standard[u]);
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        standard[u][k] = (standard[u][k] - mean) * inverse[u];
        of_weight[k] = fmaf(pushed[u][k], standard[u][k], of_weight[k]);
        of_bias[k] += pushed[u][k];
        pushed[u][k] *= weight[k];
        totals[u] += pushed[u][k];
        totals[kBack + u] = fmaf(pushed[u][k], standard[u][k], totals[kBack + u]);
      }
      if constexpr (kSum) passing[u] = raw_passed[u];
    }
    fetch(first + step);  // on its way while the block adds up
    sum_over_block(totals, shared);
    const float share = 1 / static_cast<float>(call.width);
#pragma unroll
    for (int u = 0; u < kBack; ++u) {
      if (!works || first + u >= call.rows) continue;
      float passed[kEight] = {};
      if constexpr (kSum) unpack<Value>(passing[u], passed);
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        passed[k] += inverse[u] * (pushed[u][k] - share * (totals[u] + standard[u][k] * totals[kBack + u]));
      }
      store(static_cast<Value*>(call.of_input) + (first + u) * call.width + column, pack<Value>(passed));
    }
  }
  if (!works) return;
  float* const row = call.sums + static_cast<int64_t>(blockIdx.x) * 2 * call.width + column;
#pragma unroll
  for (int k = 0; k < kEight; ++k) {
    row[k] = of_weight[k];
    row[call.width + k] = of_bias[k];
  }
}

__global__ void finish_layer_norm(LayerNormBackward call, int blocks) {
  float first, second;
  if (!fold(call.sums, blocks, static_cast<int>(call.width), first, second)) return;
  call.of_weight[fold_column()] = first;
  call.of_bias[fold_column()] = second;
}

constexpr int kCopyThreads = 256;

struct JoinCall {
  JoinShape shape;
  HeadPart parts[3];
  void* output;
};

__global__ void __launch_bounds__(kCopyThreads) join_kernel(JoinCall call, int64_t count) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kCopyThreads + threadIdx.x;
  if (index >= count) return;
  const int64_t vectors = call.shape.size / kEight, vector = index % vectors;
  int64_t rest = index / vectors;
  const int64_t head = rest % call.shape.heads;
  rest /= call.shape.heads;
  const int64_t which = rest % 3;
  rest /= 3;
  const int64_t token = rest % call.shape.tokens, batch = rest / call.shape.tokens;
  const HeadPart& part = which == 0 ? call.parts[0] : which == 1 ? call.parts[1] : call.parts[2];
  const int64_t at = batch * part.batch + head * part.head + token * part.token + vector * kEight;
  store(static_cast<uint4*>(call.output) + index, load(static_cast<const uint16_t*>(part.data) + at));
}

// What the normal distribution has below x, and its density there. The error function by Abramowitz and Stegun, 7.1.26:
// off by 1.5e-7 at most, from the one exponential that the density needs anyway.
struct Normal {
  float below, density;

  __device__ explicit Normal(float x) {
    const float exponential = __expf(-0.5F * x * x);
    const float t = __frcp_rn(fmaf(0.3275911F * 0.70710678F, fabsf(x), 1.0F));
    float tail = fmaf(1.061405429F, t, -1.453152027F);
    tail = fmaf(tail, t, 1.421413741F);
    tail = fmaf(tail, t, -0.284496736F);
    tail = fmaf(tail, t, 0.254829592F);
    tail *= 0.5F * t * exponential;
    below = x < 0 ? tail : 1.0F - tail;
    density = 0.39894228F * exponential;
  }
};

template <class Value>
__global__ void __launch_bounds__(kCopyThreads)
    gelu_kernel(const Value* __restrict__ values, Value* __restrict__ out, int64_t eights) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kCopyThreads + threadIdx.x;
  if (at >= eights) return;
  float here[kEight];
  unpack<Value>(load(values + at * kEight), here);
#pragma unroll
  for (int k = 0; k < kEight; ++k) here[k] *= Normal(here[k]).below;
  store(out + at * kEight, pack<Value>(here));
}

// The sums of the block's rows by column, into its place of the scratch.
__device__ void put_column_sums(const BatchNormGrid& grid, float* all, float* __restrict__ sums) {
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < grid.vectors * kEight; i += BatchNormGrid::kThreads) {
    const int to = static_cast<int>(blockIdx.y) * grid.vectors * kEight + i;
    if (to >= grid.channels) continue;
    float sum = 0;
    for (int row = 0; row < grid.rows_at_once; ++row) sum += all[row * grid.vectors * kEight + i];
    sums[static_cast<int64_t>(blockIdx.x) * 2 * grid.channels + to] = sum;
    sums[(static_cast<int64_t>(blockIdx.x) * 2 + 1) * grid.channels + to] = 0;
  }
}

template <class Value>
__global__ void __launch_bounds__(BatchNormGrid::kThreads) gelu_backward_kernel(GeluBackward call, BatchNormGrid grid) {
  __shared__ float all[BatchNormGrid::kThreads * kEight];
  constexpr int kRows = BatchNormGrid::kAtOnce;
  const auto* __restrict__ gradient = static_cast<const Value*>(call.gradient);
  const auto* __restrict__ input = static_cast<const Value*>(call.input);
  auto* __restrict__ of_input = static_cast<Value*>(call.of_input);
  const int across = static_cast<int>(threadIdx.x) % grid.vectors, down = static_cast<int>(threadIdx.x) / grid.vectors;
  const int column = (static_cast<int>(blockIdx.y) * grid.vectors + across) * kEight;
  float total[kEight] = {};
  if (down < grid.rows_at_once && column < grid.channels) {
    for (int64_t row = static_cast<int64_t>(blockIdx.x) * grid.rows_at_once * kRows + down; row < grid.rows;
         row += static_cast<int64_t>(gridDim.x) * grid.rows_at_once * kRows) {
      uint4 raw[kRows], raw_input[kRows];
#pragma unroll
      for (int u = 0; u < kRows; ++u) {
        const int64_t at = row + u * grid.rows_at_once;
        if (at >= grid.rows) continue;
        raw[u] = load(gradient + at * grid.channels + column);
        raw_input[u] = load(input + at * grid.channels + column);
      }
#pragma unroll
      for (int u = 0; u < kRows; ++u) {
        const int64_t at = row + u * grid.rows_at_once;
        if (at >= grid.rows) continue;
        float pushed[kEight], values[kEight];
        unpack<Value>(raw[u], pushed);
        unpack<Value>(raw_input[u], values);
#pragma unroll
        for (int k = 0; k < kEight; ++k) {
          const Normal normal(values[k]);
          pushed[k] *= fmaf(values[k], normal.density, normal.below);
          total[k] += pushed[k];
        }
        store(of_input + at * grid.channels + column, pack<Value>(pushed));
      }
    }
#pragma unroll
    for (int k = 0; k < kEight; ++k) all[threadIdx.x * kEight + k] = total[k];
  }
  put_column_sums(grid, all, call.sums);
}

template <class Value>
__global__ void __launch_bounds__(BatchNormGrid::kThreads)
    column_sums_kernel(const Value* __restrict__ values, float* __restrict__ sums, BatchNormGrid grid) {
  __shared__ float all[BatchNormGrid::kThreads * kEight];
  constexpr int kRows = BatchNormGrid::kAtOnce;
  const int across = static_cast<int>(threadIdx.x) % grid.vectors, down = static_cast<int>(threadIdx.x) / grid.vectors;
  const int column = (static_cast<int>(blockIdx.y) * grid.vectors + across) * kEight;
  float total[kEight] = {};
  if (down < grid.rows_at_once && column < grid.channels) {
    for (int64_t row = static_cast<int64_t>(blockIdx.x) * grid.rows_at_once * kRows + down; row < grid.rows;
         row += static_cast<int64_t>(gridDim.x) * grid.rows_at_once * kRows) {
      uint4 raw[kRows];
#pragma unroll
      for (int u = 0; u < kRows; ++u) {
        const int64_t at = row + u * grid.rows_at_once;
        if (at < grid.rows) raw[u] = load(values + at * grid.channels + column);
      }
#pragma unroll
      for (int u = 0; u < kRows; ++u) {
        if (row + u * grid.rows_at_once >= grid.rows) continue;
        float here[kEight];
        unpack<Value>(raw[u], here);
#pragma unroll
        for (int k = 0; k < kEight; ++k) total[k] += here[k];
      }
    }
#pragma unroll
    for (int k = 0; k < kEight; ++k) all[threadIdx.x * kEight + k] = total[k];
  }
  put_column_sums(grid, all, sums);
}

template <class Value>
__global__ void finish_column_sums(const float* sums, int blocks, int width, Value* out) {
  float first, second;
  if (fold(sums, blocks, width, first, second)) out[fold_column()] = static_cast<Value>(first);
}

}  // namespace

void add_layer_norm(const LayerNormForward& call, Number number, cudaStream_t stream) {
  const TokenGrid grid(call.rows, call.width);
  const auto blocks = static_cast<unsigned>((call.rows + kAtOnce - 1) / kAtOnce);
  const auto threads = static_cast<unsigned>(grid.threads);
  for_16_bit(number, [&]<class Value>(Value*) {
    if (call.branch) return layer_norm_kernel<Value, true><<<blocks, threads, 0, stream>>>(call);
    layer_norm_kernel<Value, false><<<blocks, threads, 0, stream>>>(call);
  });
  check_launch("add_layer_norm");
}

void add_layer_norm_backward(const LayerNormBackward& call, Number number, cudaStream_t stream) {
  const TokenGrid grid(call.rows, call.width);
  const auto blocks = static_cast<unsigned>(grid.blocks), threads = static_cast<unsigned>(grid.threads);
  for_16_bit(number, [&]<class Value>(Value*) {
    if (call.of_sum) return layer_norm_backward_kernel<Value, true><<<blocks, threads, 0, stream>>>(call);
    layer_norm_backward_kernel<Value, false><<<blocks, threads, 0, stream>>>(call);
  });
  finish_layer_norm<<<fold_blocks(call.width), fold_threads(), 0, stream>>>(call, grid.blocks);
  check_launch("add_layer_norm_backward");
}

void join_qkv(const JoinShape& shape, const HeadPart (&parts)[3], void* output, cudaStream_t stream) {
  const int64_t count = shape.batch * shape.tokens * 3 * shape.heads * (shape.size / kEight);
  const JoinCall call{shape, {parts[0], parts[1], parts[2]}, output};
  join_kernel<<<static_cast<unsigned>((count + kCopyThreads - 1) / kCopyThreads), kCopyThreads, 0, stream>>>(call,
                                                                                                             count);
  check_launch("join_qkv");
}

void column_sums(int64_t rows, int64_t width, Number number, const void* values, float* sums, void* out,
                 cudaStream_t stream) {
  const BatchNormGrid grid(rows, width);
  const dim3 blocks(static_cast<unsigned>(grid.blocks_down), static_cast<unsigned>(grid.blocks_across));
  for_16_bit(number, [&]<class Value>(Value*) {
    column_sums_kernel<<<blocks, BatchNormGrid::kThreads, 0, stream>>>(static_cast<const Value*>(values), sums, grid);
    finish_column_sums<<<fold_blocks(width), fold_threads(), 0, stream>>>(
        sums, grid.blocks_down, static_cast<int>(width), static_cast<Value*>(out));
  });
  check_launch("column_sums");
}

void gelu(int64_t count, Number number, const void* values, void* out, cudaStream_t stream) {
  const int64_t eights = count / kEight;
  const auto blocks = static_cast<unsigned>((eights + kCopyThreads - 1) / kCopyThreads);
  for_16_bit(number, [&]<class Value>(Value*) {
    gelu_kernel<<<blocks, kCopyThreads, 0, stream>>>(static_cast<const Value*>(values), static_cast<Value*>(out),
                                                     eights);
  });
  check_launch("gelu");
}

void gelu_backward(const GeluBackward& call, Number number, cudaStream_t stream) {
  const BatchNormGrid grid(call.rows, call.width);
  const dim3 blocks(static_cast<unsigned>(grid.blocks_down), static_cast<unsigned>(grid.blocks_across));
  for_16_bit(number, [&]<class Value>(Value*) {
    gelu_backward_kernel<Value><<<blocks, BatchNormGrid::kThreads, 0, stream>>>(call, grid);
    finish_column_sums<<<fold_blocks(call.width), fold_threads(), 0, stream>>>(
        call.sums, grid.blocks_down, static_cast<int>(call.width), static_cast<Value*>(call.of_bias));
  });
  check_launch("gelu_backward");
}

}  // namespace lockstep_cuda_internal
