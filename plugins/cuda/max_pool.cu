// SPDX-License-Identifier: Apache-2.0
// A thread has eight channels of one pixel. Backward every pixel asks the windows it lies in: nothing is added to
// memory, so sums have one order.
#include "plugins/cuda/max_pool.h"

#include "plugins/cuda/eights.cuh"

namespace lockstep_cuda_internal {
namespace {

constexpr int kThreads = 256;

unsigned blocks_for(int64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

// 32 bits: divisions of 64 take longer than the memory does. takes_max_pool() sees to it that they do.
struct Pixel {
  unsigned image;
  int row, column, channel;

  __device__ Pixel(unsigned index, int height, int width, int vectors) {
    const unsigned pixel = index / static_cast<unsigned>(vectors);
    channel = static_cast<int>(index - pixel * static_cast<unsigned>(vectors)) * kEight;
    const unsigned line = pixel / static_cast<unsigned>(width);
    column = static_cast<int>(pixel - line * static_cast<unsigned>(width));
    image = line / static_cast<unsigned>(height);
    row = static_cast<int>(line - image * static_cast<unsigned>(height));
  }
};

template <class Value>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(PoolShape shape, const Value* __restrict__ input, Value* __restrict__ output,
                   uint8_t* __restrict__ places, int64_t count) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= count) return;
  const Pixel pixel(index, shape.pooled_height, shape.pooled_width, shape.channels / kEight);
  const Value* map = input + int64_t{pixel.image} * shape.height * shape.width * shape.channels + pixel.channel;
  const int top = pixel.row * shape.stride - shape.padding, left = pixel.column * shape.stride - shape.padding;
  float most[kEight];
  unsigned place[kEight];
  bool first = true;
  for (int y = max(top, 0); y < min(top + shape.size, shape.height); ++y) {
    for (int x = max(left, 0); x < min(left + shape.size, shape.width); ++x) {
      float values[kEight];
      unpack<Value>(load(map + (static_cast<int64_t>(y) * shape.width + x) * shape.channels), values);
      const unsigned here = static_cast<unsigned>((y - top) * shape.size + x - left);
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        const bool more = first || values[k] > most[k] || isnan(values[k]);
        most[k] = more ? values[k] : most[k];
        place[k] = more ? here : place[k];
      }
      first = false;
    }
  }
  store(output + int64_t{index} * kEight, pack<Value>(most));
  uint2 bytes{};
  bytes.x = place[0] | place[1] << 8 | place[2] << 16 | place[3] << 24;
  bytes.y = place[4] | place[5] << 8 | place[6] << 16 | place[7] << 24;
  reinterpret_cast<uint2*>(places)[index] = bytes;
}

template <class Value>
__global__ void __launch_bounds__(kThreads)
    backward_kernel(PoolShape shape, const Value* __restrict__ gradient, const uint8_t* __restrict__ places,
                    Value* __restrict__ of_input, int64_t count) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= count) return;
  const Pixel pixel(index, shape.height, shape.width, shape.channels / kEight);
  const int row = pixel.row + shape.padding, column = pixel.column + shape.padding;
  // Windows that start at most size - 1 before the pixel.
  const int first_y = row < shape.size ? 0 : (row - shape.size) / shape.stride + 1;
  const int first_x = column < shape.size ? 0 : (column - shape.size) / shape.stride + 1;
  const int last_y = min(row / shape.stride, shape.pooled_height - 1);
  const int last_x = min(column / shape.stride, shape.pooled_width - 1);
  float sums[kEight] = {};
  for (int y = first_y; y <= last_y; ++y) {
    for (int x = first_x; x <= last_x; ++x) {
      const int64_t at =
          ((int64_t{pixel.image} * shape.pooled_height + y) * shape.pooled_width + x) * shape.channels + pixel.channel;
      const unsigned here = static_cast<unsigned>((row - y * shape.stride) * shape.size + column - x * shape.stride);
      const uint2 bytes = __ldg(reinterpret_cast<const uint2*>(places + at));
      float pushed[kEight];
      unpack<Value>(load(gradient + at), pushed);
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        const unsigned place = ((k < 4 ? bytes.x : bytes.y) >> (8 * (k % 4))) & 255U;
        sums[k] += place == here ? pushed[k] : 0.0F;
      }
    }
  }
  store(of_input + int64_t{index} * kEight, pack<Value>(sums));
}

}  // namespace

void max_pool(const PoolShape& shape, Number number, const void* input, void* output, uint8_t* places,
              cudaStream_t stream) {
  const int64_t count = int64_t{shape.images} * shape.pooled_height * shape.pooled_width * (shape.channels / kEight);
  for_16_bit(number, [&]<class Value>(Value*) {
    forward_kernel<<<blocks_for(count), kThreads, 0, stream>>>(
        shape, static_cast<const Value*>(input), static_cast<Value*>(output), places, static_cast<unsigned>(count));
  });
  check_launch("max_pool");
}

void max_pool_backward(const PoolShape& shape, Number number, const void* gradient, const uint8_t* places,
                       void* of_input, cudaStream_t stream) {
  const int64_t count = int64_t{shape.images} * shape.height * shape.width * (shape.channels / kEight);
  for_16_bit(number, [&]<class Value>(Value*) {
    backward_kernel<<<blocks_for(count), kThreads, 0, stream>>>(shape, static_cast<const Value*>(gradient), places,
                                                                static_cast<Value*>(of_input),
                                                                static_cast<unsigned>(count));
  });
  check_launch("max_pool_backward");
}

}  // namespace lockstep_cuda_internal
