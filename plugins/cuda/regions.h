// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "plugins/cuda/number.h"

// The GPU's half of the operators of lockstep/kernel, which say what each of them does. Pointers to device memory,
// without gaps; maps lie channels last. Every function starts its kernels on the stream and returns.
namespace lockstep_cuda_internal {

constexpr int kMostLevels = 8;
struct AnchorLevels {
  int count = 0;
  int64_t rows[kMostLevels] = {}, columns[kMostLevels] = {};
  int64_t first[kMostLevels + 1] = {};  // anchors before the level; behind the last: of all
  float down[kMostLevels] = {}, across[kMostLevels] = {};
};
void anchors(const AnchorLevels& levels, float* out, cudaStream_t stream);

struct Coder {
  float position, size;
};
void decode_boxes(const float* boxes, const float* deltas, const float* shown, const Coder& coder, int64_t images,
                  int64_t per_image, int64_t each, float* out, cudaStream_t stream);
void encode_boxes(const float* boxes, const float* wanted, const Coder& coder, int64_t count, float* out,
                  cudaStream_t stream);

// `scores` and `order`: of each image's boxes, best first. `repeats`: scratch, [images, boxes, words of 64 boxes].
struct NmsCall {
  const float* boxes;
  const float* scores;
  const int64_t* order;
  const int64_t* groups;
  int64_t images, count, slots;
  float threshold;
  uint64_t* repeats;
  int64_t* indices;
  bool* valid;
};
void nms(const NmsCall& call, cudaStream_t stream);

struct MatchCall {
  const float* boxes;
  int64_t box_images;  // 1: the same for all
  const float* objects;
  const int64_t* labels;
  int64_t images, count, slots;
  float low, high;
  float* most;  // scratch, zeros [images, slots]; null: the best of an object is not looked for
  int64_t* matches;
};
void match(const MatchCall& call, cudaStream_t stream);

struct RoiCall {
  int64_t height[4], width[4];
  const float* boxes;
  int64_t images, per_image, channels, size, sampling;
};
void roi_align(const RoiCall& call, Number number, const void* const maps[4], void* out, cudaStream_t stream);
// `maps`: zeros that the gradients are added to, in any order.
void roi_align_backward(const RoiCall& call, Number number, const void* gradient, float* const maps[4],
                        cudaStream_t stream);

struct MaskCall {
  const uint8_t* masks;
  const float* objects;
  const float* shown;
  const int64_t* matches;
  const float* regions;
  int64_t images, slots, cells, per_image, size;
  float* values;
  bool* present;
};
void mask_targets(const MaskCall& call, cudaStream_t stream);

}  // namespace lockstep_cuda_internal
