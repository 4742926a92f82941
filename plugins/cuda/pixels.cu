// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/pixels.h"

#include "plugins/cuda/eights.cuh"

namespace lockstep_cuda_internal {
namespace {

constexpr int kThreads = 256;
constexpr int kAtOnce = 4;

__device__ float number_of(const float (&by_channel)[4], int channel) {
  return channel == 0 ? by_channel[0] : channel == 1 ? by_channel[1] : channel == 2 ? by_channel[2] : by_channel[3];
}

__global__ void __launch_bounds__(kThreads)
    normalise_kernel(PixelNumbers numbers, int64_t count, const uint8_t* __restrict__ pixels, float* __restrict__ out) {
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kAtOnce;
  if (first >= count) return;
  int channel = static_cast<int>(first % numbers.channels);
  float values[kAtOnce];
  const bool whole = first + kAtOnce <= count;
  const uchar4 four = whole ? __ldg(reinterpret_cast<const uchar4*>(pixels + first)) : uchar4{};
  const unsigned char bytes[kAtOnce] = {four.x, four.y, four.z, four.w};
#pragma unroll
  for (int i = 0; i < kAtOnce; ++i) {
    const float value = whole ? bytes[i] : first + i < count ? pixels[first + i] : 0;
    values[i] = __fadd_rn(__fmul_rn(value, number_of(numbers.factor, channel)), number_of(numbers.offset, channel));
    channel = channel + 1 == numbers.channels ? 0 : channel + 1;
  }
  if (whole) {
    *reinterpret_cast<float4*>(out + first) = {values[0], values[1], values[2], values[3]};
    return;
  }
#pragma unroll
  for (int i = 0; i < kAtOnce; ++i) {
    if (first + i < count) out[first + i] = values[i];
  }
}

}  // namespace

void normalise(const PixelNumbers& numbers, int64_t count, const uint8_t* pixels, float* out, cudaStream_t stream) {
  const int64_t per_block = int64_t{kThreads} * kAtOnce;
  normalise_kernel<<<static_cast<unsigned>((count + per_block - 1) / per_block), kThreads, 0, stream>>>(numbers, count,
                                                                                                        pixels, out);
  check_launch("normalise");
}

}  // namespace lockstep_cuda_internal
