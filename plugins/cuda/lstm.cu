// SPDX-License-Identifier: Apache-2.0
// A thread has one channel of a pixel at a time: neighbours in a warp are neighbours in memory, for each of the gates.
#include "plugins/cuda/lstm.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "lockstep/kernel/lstm_grid.h"
#include "plugins/cuda/eights.cuh"

namespace lockstep_cuda_internal {
namespace {

using lockstep::kernel::LstmGrid;

constexpr int kThreads = LstmGrid::kThreads;

__device__ float to_float(float value) {
  return value;
}
__device__ float to_float(__nv_bfloat16 value) {
  return __bfloat162float(value);
}
__device__ float to_float(__half value) {
  return __half2float(value);
}
template <class Value>
__device__ Value from_float(float value);
template <>
__device__ float from_float<float>(float value) {
  return value;
}
template <>
__device__ __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
  return __float2bfloat16(value);
}
template <>
__device__ __half from_float<__half>(float value) {
  return __float2half(value);
}

__device__ float sigmoid(float x) {
  return 1.0F / (1.0F + __expf(-x));
}
__device__ float hyperbolic(float x) {
  return 2.0F / (1.0F + __expf(-2.0F * x)) - 1.0F;
}

template <class Value>
struct Pointers {
  const Value *input_sums, *state_sums, *bias, *peepholes;
  Value *hidden, *gates;
};

template <class Value>
__global__ void __launch_bounds__(kThreads) forward_kernel(LstmForward call, Pointers<Value> at) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= call.pixels * call.channels) return;
  const int64_t pixel = index / call.channels;
  const int channel = static_cast<int>(index - pixel * call.channels), channels = call.channels;
  const int64_t first = pixel * 4 * channels + channel;
  float z[4];
#pragma unroll
  for (int gate = 0; gate < 4; ++gate) {
    z[gate] =
        at.input_sums ? to_float(at.input_sums[first + gate * channels]) : to_float(at.bias[gate * channels + channel]);
    if (at.state_sums) z[gate] += to_float(at.state_sums[first + gate * channels]);
  }
  const float cell = call.cells[index];
  const float in = sigmoid(z[0] + to_float(at.peepholes[channel]) * cell);
  const float forget = sigmoid(z[1] + to_float(at.peepholes[channels + channel]) * cell);
  const float candidate = hyperbolic(z[2]);
  const float next = forget * cell + in * candidate;
  const float out = sigmoid(z[3] + to_float(at.peepholes[2 * channels + channel]) * next);
  call.cells_out[index] = next;
  at.hidden[index] = from_float<Value>(out * hyperbolic(next));
  if (!at.gates) return;
  const float values[4] = {in, forget, candidate, out};
#pragma unroll
  for (int gate = 0; gate < 4; ++gate) at.gates[first + gate * channels] = from_float<Value>(values[gate]);
}

template <class Value>
__global__ void __launch_bounds__(kThreads)
    backward_kernel(LstmBackward call, LstmGrid grid, const Value* __restrict__ of_hidden,
                    const Value* __restrict__ gates, const Value* __restrict__ peepholes, Value* __restrict__ of_sums) {
  __shared__ float shared[3][kThreads];
  const int channels = call.channels, row = threadIdx.x / grid.lanes, lane = threadIdx.x % grid.lanes;
  for (int base = 0; base < channels; base += grid.lanes) {  // one round, unless there are more channels than threads
    const int channel = base + lane;
    float sums[3] = {0, 0, 0};
    if (row < grid.rows && channel < channels) {
      const float hole_in = to_float(peepholes[channel]), hole_forget = to_float(peepholes[channels + channel]),
                  hole_out = to_float(peepholes[2 * channels + channel]);
      for (int64_t pixel = static_cast<int64_t>(blockIdx.x) * grid.rows + row; pixel < call.pixels;
           pixel += static_cast<int64_t>(gridDim.x) * grid.rows) {
        const int64_t index = pixel * channels + channel, first = pixel * 4 * channels + channel;
        const float in = to_float(gates[first]), forget = to_float(gates[first + channels]),
                    candidate = to_float(gates[first + 2 * channels]), out = to_float(gates[first + 3 * channels]);
        const float before = call.before[index], after = call.after[index], bent = hyperbolic(after),
                    of_h = to_float(of_hidden[index]);
        const float of_out = of_h * bent * out * (1 - out);
        const float of_after = call.of_cells[index] + of_h * out * (1 - bent * bent) + of_out * hole_out;
        const float of_in = of_after * candidate * in * (1 - in);
        const float of_forget = of_after * before * forget * (1 - forget);
        of_sums[first] = from_float<Value>(of_in);
        of_sums[first + channels] = from_float<Value>(of_forget);
        of_sums[first + 2 * channels] = from_float<Value>(of_after * in * (1 - candidate * candidate));
        of_sums[first + 3 * channels] = from_float<Value>(of_out);
        call.of_cells[index] = of_after * forget + of_in * hole_in + of_forget * hole_forget;
        sums[0] += of_in * before;
        sums[1] += of_forget * before;
        sums[2] += of_out * after;
      }
    }
#pragma unroll
    for (int i = 0; i < 3; ++i) shared[i][threadIdx.x] = sums[i];
    __syncthreads();
    if (row == 0 && channel < channels) {
      for (int i = 0; i < 3; ++i) {
        float sum = 0;
        for (int other = 0; other < grid.rows; ++other) sum += shared[i][other * grid.lanes + lane];
        call.scratch[(static_cast<int64_t>(i) * gridDim.x + blockIdx.x) * channels + channel] = sum;
      }
    }
    __syncthreads();
  }
}

// Sums of the blocks, in their order. A block of threads has 32 channels of one peephole.
__global__ void __launch_bounds__(256)
    fold_kernel(int blocks, int channels, const float* __restrict__ scratch, float* sums) {
  __shared__ float shared[8][33];
  const int channel = static_cast<int>(blockIdx.x) * 32 + static_cast<int>(threadIdx.x),
            hole = static_cast<int>(blockIdx.y);
  float sum = 0;
  if (channel < channels) {
    for (int block = static_cast<int>(threadIdx.y); block < blocks; block += 8)
      sum += scratch[(static_cast<int64_t>(hole) * blocks + block) * channels + channel];
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || channel >= channels) return;
  for (int i = 1; i < 8; ++i) sum += shared[i][threadIdx.x];
  sums[hole * channels + channel] += sum;
}

template <class Value>
void forward(const LstmForward& call, cudaStream_t stream) {
  const auto as = [](const void* pointer) { return static_cast<const Value*>(pointer); };
  const int64_t count = call.pixels * call.channels;
  forward_kernel<Value><<<static_cast<unsigned>((count + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      call, {as(call.input_sums), as(call.state_sums), as(call.bias), as(call.peepholes),
             static_cast<Value*>(call.hidden), static_cast<Value*>(call.gates)});
}

template <class Value>
void backward(const LstmBackward& call, const LstmGrid& grid, cudaStream_t stream) {
  backward_kernel<Value><<<static_cast<unsigned>(grid.blocks), kThreads, 0, stream>>>(
      call, grid, static_cast<const Value*>(call.of_hidden), static_cast<const Value*>(call.gates),
      static_cast<const Value*>(call.peepholes), static_cast<Value*>(call.of_sums));
}

}  // namespace

void lstm_gates(const LstmForward& call, Number number, cudaStream_t stream) {
  if (number == Number::fp32) forward<float>(call, stream);
  if (number == Number::bf16) forward<__nv_bfloat16>(call, stream);
  if (number == Number::fp16) forward<__half>(call, stream);
  check_launch("lstm_gates");
}

void lstm_gates_backward(const LstmBackward& call, Number number, cudaStream_t stream) {
  const LstmGrid grid(call.pixels, call.channels);
  if (number == Number::fp32) backward<float>(call, grid, stream);
  if (number == Number::bf16) backward<__nv_bfloat16>(call, grid, stream);
  if (number == Number::fp16) backward<__half>(call, grid, stream);
  check_launch("lstm_gates_backward");
  fold_kernel<<<dim3(static_cast<unsigned>((call.channels + 31) / 32), 3), dim3(32, 8), 0, stream>>>(
      grid.blocks, call.channels, call.scratch, call.of_peepholes);
  check_launch("lstm_gates_backward");
}

}  // namespace lockstep_cuda_internal
