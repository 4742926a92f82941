// SPDX-License-Identifier: Apache-2.0
// Compiled without contraction of products and sums: overlaps have the bits of the CPU's.
#include "plugins/cuda/regions.h"

#include "lockstep/kernel/box_math.h"
#include "plugins/cuda/eights.cuh"

namespace lockstep_cuda_internal {
namespace {

using lockstep::kernel::BinAxis;
using lockstep::kernel::Box;
using lockstep::kernel::CoderWeights;
using lockstep::kernel::larger;
using lockstep::kernel::level_of;
using lockstep::kernel::MaskAxis;
using lockstep::kernel::overlap;
using lockstep::kernel::PixelPair;
using lockstep::kernel::pixels_at;
using lockstep::kernel::smaller;

constexpr int kThreads = 256;
constexpr int kTile = 64;  // boxes of a word

unsigned blocks_for(int64_t count) {
  return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

__device__ int64_t thread_index() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ Box box_at(const float* boxes, int64_t index) {
  const float4 box = reinterpret_cast<const float4*>(boxes)[index];
  return {box.x, box.y, box.z, box.w};
}

__device__ void put_box(float* boxes, int64_t index, const Box& box) {
  reinterpret_cast<float4*>(boxes)[index] = {box.x1, box.y1, box.x2, box.y2};
}

__global__ void anchors_kernel(AnchorLevels levels, float* out) {
  const int64_t index = thread_index();
  if (index >= levels.first[levels.count]) return;
  int level = 0;
  while (index >= levels.first[level + 1]) ++level;
  const int64_t inside = index - levels.first[level], cell = inside / 3;
  const float ratio = inside % 3 == 0 ? 0.5F : inside % 3 == 1 ? 1.0F : 2.0F;
  const float side = static_cast<float>(32 << level), tall = sqrtf(ratio);
  const float half_width = rintf(side / tall / 2), half_height = rintf(side * tall / 2);
  const float x = static_cast<float>(cell % levels.columns[level]) * levels.across[level];
  const float y = static_cast<float>(cell / levels.columns[level]) * levels.down[level];
  put_box(out, index, {x - half_width, y - half_height, x + half_width, y + half_height});
}

__global__ void decode_kernel(const float* boxes, const float* deltas, const float* shown, CoderWeights weights,
                              int64_t count, int64_t per_image, int64_t each, float* out) {
  const int64_t index = thread_index();
  if (index >= count) return;
  const int64_t box = index / each, image = box / per_image;
  put_box(out, index,
          lockstep::kernel::decode(box_at(boxes, box), deltas + 4 * index, weights, shown[2 * image],
                                   shown[2 * image + 1]));
}

__global__ void encode_kernel(const float* boxes, const float* wanted, CoderWeights weights, int64_t count,
                              float* out) {
  const int64_t index = thread_index();
  if (index >= count) return;
  lockstep::kernel::encode(box_at(boxes, index), box_at(wanted, index), weights, out + 4 * index);
}

// Bit k of a row's word: the row's box and the word's k-th are the same object. Only words from the row's own on.
__global__ void repeats_kernel(NmsCall call, int64_t words) {
  if (blockIdx.x < blockIdx.y) return;
  const int64_t image = blockIdx.z, row = static_cast<int64_t>(blockIdx.y) * kTile + threadIdx.x;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kTile;
  const int64_t* order = call.order + image * call.count;
  const float* scores = call.scores + image * call.count;
  const float* boxes = call.boxes + 4 * image * call.count;
  const int64_t* groups = call.groups + image * call.count;
  if (scores[static_cast<int64_t>(blockIdx.y) * kTile] < 0) return;  // the whole tile is absent
  __shared__ Box others[kTile];
  __shared__ int64_t their_groups[kTile];
  if (first + threadIdx.x < call.count) {
    const int64_t other = order[first + threadIdx.x];
    others[threadIdx.x] = box_at(boxes, other);
    their_groups[threadIdx.x] = groups[other];
  }
  __syncthreads();
  if (row >= call.count) return;
  const int64_t own = order[row];
  const Box box = box_at(boxes, own);
  const int64_t group = groups[own];
  uint64_t word = 0;
  const int64_t last = call.count - first < kTile ? call.count - first : kTile;
  for (int64_t k = blockIdx.x == blockIdx.y ? threadIdx.x + 1 : 0; k < last; ++k) {
    if (their_groups[k] == group && overlap(box, others[k]) > call.threshold) word |= uint64_t{1} << k;
  }
  call.repeats[(image * call.count + row) * words + blockIdx.x] = word;
}

// One block an image, from the best box down, a word of boxes at a time.
__global__ void sweep_kernel(NmsCall call, int64_t words) {
  extern __shared__ uint64_t removed[];
  __shared__ uint64_t own[kTile];
  __shared__ uint64_t keep;
  __shared__ int64_t kept;
  const int64_t image = blockIdx.x;
  const int64_t* order = call.order + image * call.count;
  const float* scores = call.scores + image * call.count;
  const uint64_t* repeats = call.repeats + image * call.count * words;
  for (int64_t i = threadIdx.x; i < call.slots; i += blockDim.x) {
    call.indices[image * call.slots + i] = 0;
    call.valid[image * call.slots + i] = false;
  }
  for (int64_t i = threadIdx.x; i < words; i += blockDim.x) removed[i] = 0;
  if (threadIdx.x == 0) kept = 0;
  __syncthreads();
  for (int64_t tile = 0; tile < words; ++tile) {
    const int64_t first = tile * kTile;
    if (kept >= call.slots || scores[first] < 0) break;  // all threads see the same; what is no number stands first
    if (threadIdx.x < kTile && first + threadIdx.x < call.count) {
      own[threadIdx.x] = repeats[(first + threadIdx.x) * words + tile];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      uint64_t gone = removed[tile], chosen = 0;
      int64_t slot = kept;
      for (int64_t k = 0; k < kTile && first + k < call.count && slot < call.slots; ++k) {
        if ((gone >> k & 1) != 0 || !(scores[first + k] >= 0)) continue;
        chosen |= uint64_t{1} << k;
        gone |= own[k];
        call.indices[image * call.slots + slot] = order[first + k];
        call.valid[image * call.slots + slot] = true;
        ++slot;
      }
      keep = chosen;
      kept = slot;
    }
    __syncthreads();
    for (int64_t word = tile + 1 + threadIdx.x; word < words; word += blockDim.x) {
      uint64_t gone = removed[word];
      for (uint64_t left = keep; left != 0; left &= left - 1) {
        gone |= repeats[(first + __ffsll(static_cast<long long>(left)) - 1) * words + word];
      }
      removed[word] = gone;
    }
    __syncthreads();
  }
}

// What a box overlaps each object at most. Overlaps are not negative, so their bits are in the order of their values.
__global__ void most_kernel(MatchCall call) {
  const int64_t image = blockIdx.y, index = thread_index();
  const bool there = index < call.count;
  const Box box = there ? box_at(call.boxes, (call.box_images == 1 ? 0 : image * call.count) + index) : Box{0, 0, 0, 0};
  for (int64_t slot = 0; slot < call.slots; ++slot) {
    const int64_t object = image * call.slots + slot;
    if (call.labels[object] <= 0) continue;
    int bits = there ? __float_as_int(overlap(box_at(call.objects, object), box)) : 0;
    for (int step = 16; step > 0; step /= 2) bits = max(bits, __shfl_xor_sync(0xffffffffU, bits, step));
    if (threadIdx.x % 32 == 0 && bits > 0) atomicMax(reinterpret_cast<int*>(call.most) + object, bits);
  }
}

__global__ void match_kernel(MatchCall call) {
  const int64_t image = blockIdx.y, index = thread_index();
  if (index >= call.count) return;
  const Box box = box_at(call.boxes, (call.box_images == 1 ? 0 : image * call.count) + index);
  float most = 0;
  int64_t best = -1;
  bool is_best = false;
  for (int64_t slot = 0; slot < call.slots; ++slot) {
    const int64_t object = image * call.slots + slot;
    if (call.labels[object] <= 0) continue;
    if (best < 0) best = slot;
    const float shared = overlap(box_at(call.objects, object), box);
    if (shared > most) {
      most = shared;
      best = slot;
    }
    is_best = is_best || (call.most != nullptr && shared > 0 && shared == call.most[object]);
  }
  if (!is_best && most < call.high) best = most < call.low ? -1 : -2;
  call.matches[image * call.count + index] = best;
}

template <class Value>
__device__ float to_float(Value value) {
  return static_cast<float>(value);
}

// Neighbouring channels, read and written at once.
template <class Value, int kCount>
struct alignas(sizeof(Value) * kCount) Pack {
  Value values[kCount];
};

// Position of a thread: channels along x, bins along y of the block, regions along the grid.
struct RoiPosition {
  int64_t region, bin, channel;
  bool there;

  __device__ RoiPosition(const RoiCall& call, int pack)
      : region(blockIdx.x),
        bin(static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y),
        channel((static_cast<int64_t>(blockIdx.z) * blockDim.x + threadIdx.x) * pack),
        there(bin < call.size * call.size && channel < call.channels) {}
};

// Calls `use` with the pixel (its index in the map) and weight of every tap of every sample of the thread's bin.
template <class Use>
__device__ void each_tap(const RoiCall& call, const RoiPosition& at, const Box& box, int64_t level, const Use& use) {
  const float scale = 1.0F / static_cast<float>(lockstep::kernel::kFirstStride << level);
  const BinAxis down(box.y1, box.y2, scale, call.size), across(box.x1, box.x2, scale, call.size);
  const int64_t height = call.height[level], width = call.width[level];
  const int64_t map = at.region / call.per_image * height * width;
  for (int64_t i = 0; i < call.sampling; ++i) {
    const PixelPair rows = pixels_at(down.sample(at.bin / call.size, i, call.sampling), height);
    for (int64_t k = 0; k < call.sampling; ++k) {
      const PixelPair columns = pixels_at(across.sample(at.bin % call.size, k, call.sampling), width);
      use(map + rows.low * width + columns.low, rows.low_weight * columns.low_weight);
      use(map + rows.low * width + columns.high, rows.low_weight * columns.high_weight);
      use(map + rows.high * width + columns.low, rows.high_weight * columns.low_weight);
      use(map + rows.high * width + columns.high, rows.high_weight * columns.high_weight);
    }
  }
}

template <class Value>
struct FourMaps {
  Value* data[4];
};

template <class Value, int kCount>
__global__ void roi_kernel(RoiCall call, FourMaps<const Value> maps, Value* out) {
  const RoiPosition at(call, kCount);
  if (!at.there) return;
  const Box box = box_at(call.boxes, at.region);
  const int64_t level = level_of(box);
  const Value* map = maps.data[level];
  float sums[kCount] = {};
  each_tap(call, at, box, level, [&](int64_t pixel, float weight) {
    const auto seen = *reinterpret_cast<const Pack<Value, kCount>*>(map + pixel * call.channels + at.channel);
    for (int i = 0; i < kCount; ++i) sums[i] += weight * to_float(seen.values[i]);
  });
  Pack<Value, kCount> result;
  const auto samples = static_cast<float>(call.sampling * call.sampling);
  for (int i = 0; i < kCount; ++i) result.values[i] = static_cast<Value>(sums[i] / samples);
  const int64_t to = (at.region * call.size * call.size + at.bin) * call.channels + at.channel;
  *reinterpret_cast<Pack<Value, kCount>*>(out + to) = result;
}

template <int kCount>
__device__ void add_at(float* to, const float* values, float weight) {
#if __CUDA_ARCH__ >= 900
  if constexpr (kCount == 4) {
    const float4 all = {weight * values[0], weight * values[1], weight * values[2], weight * values[3]};
    atomicAdd(reinterpret_cast<float4*>(to), all);
  } else
#endif
  {
    for (int i = 0; i < kCount; ++i) atomicAdd(to + i, weight * values[i]);
  }
}

template <class Value, int kCount>
__global__ void roi_backward_kernel(RoiCall call, const Value* gradient, FourMaps<float> maps) {
  const RoiPosition at(call, kCount);
  if (!at.there) return;
  const Box box = box_at(call.boxes, at.region);
  const int64_t level = level_of(box);
  const int64_t from = (at.region * call.size * call.size + at.bin) * call.channels + at.channel;
  const auto given = *reinterpret_cast<const Pack<Value, kCount>*>(gradient + from);
  float values[kCount];
  bool is_zero = true;
  for (int i = 0; i < kCount; ++i) {
    values[i] = to_float(given.values[i]);
    is_zero = is_zero && values[i] == 0;
  }
  if (is_zero) return;  // of an empty slot
  const float share = 1.0F / static_cast<float>(call.sampling * call.sampling);
  each_tap(call, at, box, level, [&](int64_t pixel, float weight) {
    if (weight != 0) add_at<kCount>(maps.data[level] + pixel * call.channels + at.channel, values, weight * share);
  });
}

// How much of each cell of a mask a bin has, in one direction (lockstep/kernel/mask_targets.cpp): the row of one bin.
__device__ void shares_of_bin(float from, float to, float shown, const MaskAxis& mask, int64_t bins, int64_t bin,
                              float* shares) {
  for (int64_t i = 0; i < mask.cells; ++i) shares[i] = 0;
  const BinAxis axis(from, to, 1, bins);
  const auto samples = static_cast<int64_t>(ceilf(axis.bin));
  const float share = 1.0F / static_cast<float>(samples);
  for (int64_t i = 0; i < samples; ++i) {
    const float position = axis.sample(bin, i, samples);
    if (!(position >= -1 && position <= shown)) continue;
    const float cell = mask.cell_at(smaller(larger(position, 0), larger(shown - 1, 0)));
    const auto low = static_cast<int64_t>(floorf(cell));
    const float part = cell - floorf(cell);
    if (low >= 0 && low < mask.cells) shares[low] += (1 - part) * share;
    if (low + 1 >= 0 && low + 1 < mask.cells) shares[low + 1] += part * share;
  }
}

// One block a region: the mask is shrunk in one direction, then in the other.
__global__ void mask_kernel(MaskCall call) {
  extern __shared__ float memory[];
  float* rows = memory;                              // [size, cells]
  float* columns = rows + call.size * call.cells;    // likewise
  float* strips = columns + call.size * call.cells;  // likewise: shrunk in the direction of the rows
  const int64_t region = blockIdx.x, image = region / call.per_image, slot = call.matches[region];
  float* out = call.values + region * call.size * call.size;
  if (slot < 0) {
    for (int64_t i = threadIdx.x; i < call.size * call.size; i += blockDim.x) out[i] = 0;
    if (threadIdx.x == 0) call.present[region] = false;
    return;
  }
  const int64_t object = image * call.slots + slot;
  const uint8_t* mask = call.masks + object * call.cells * call.cells;
  const Box box = box_at(call.objects, object), wanted = box_at(call.regions, region);
  const MaskAxis down(box.y1, box.y2, call.cells), across(box.x1, box.x2, call.cells);
  const float* shown = call.shown + 2 * image;
  for (int64_t bin = threadIdx.x; bin < 2 * call.size; bin += blockDim.x) {
    if (bin < call.size) {
      shares_of_bin(wanted.y1, wanted.y2, shown[0], down, call.size, bin, rows + bin * call.cells);
    } else {
      const int64_t column = bin - call.size;
      shares_of_bin(wanted.x1, wanted.x2, shown[1], across, call.size, column, columns + column * call.cells);
    }
  }
  bool any = false;
  for (int64_t i = threadIdx.x; i < call.cells * call.cells; i += blockDim.x) any = any || mask[i] != 0;
  any = __syncthreads_or(any);
  if (threadIdx.x == 0) call.present[region] = any;
  for (int64_t i = threadIdx.x; i < call.size * across.cells; i += blockDim.x) {
    const int64_t bin = i / across.cells, column = i % across.cells;
    float sum = 0;
    for (int64_t row = 0; row < down.cells; ++row) {
      const float share = rows[bin * call.cells + row];
      if (share != 0 && mask[row * call.cells + column] != 0) sum += share;
    }
    strips[bin * call.cells + column] = sum;
  }
  __syncthreads();
  for (int64_t i = threadIdx.x; i < call.size * call.size; i += blockDim.x) {
    const int64_t row = i / call.size, bin = i % call.size;
    float sum = 0;
    for (int64_t cell = 0; cell < across.cells; ++cell) {
      sum += columns[bin * call.cells + cell] * strips[row * call.cells + cell];
    }
    out[i] = sum;
  }
}

CoderWeights weights_of(const Coder& coder) {
  return {coder.position, coder.position, coder.size, coder.size};
}

struct RoiLaunch {
  dim3 grid, block;

  RoiLaunch(const RoiCall& call, int pack) {
    const auto across = static_cast<unsigned>((call.channels + pack - 1) / pack);
    block.x = across < 64 ? across : 64;
    block.y = kThreads / block.x;
    grid.x = static_cast<unsigned>(call.images * call.per_image);
    grid.y = static_cast<unsigned>((call.size * call.size + block.y - 1) / block.y);
    grid.z = (across + block.x - 1) / block.x;
  }
};

template <class Value, int kCount>
void launch_roi(const RoiCall& call, const void* const maps[4], void* out, cudaStream_t stream) {
  const RoiLaunch launch(call, kCount);
  FourMaps<const Value> four{};
  for (int i = 0; i < 4; ++i) four.data[i] = static_cast<const Value*>(maps[i]);
  roi_kernel<Value, kCount><<<launch.grid, launch.block, 0, stream>>>(call, four, static_cast<Value*>(out));
}

template <class Value, int kCount>
void launch_roi_backward(const RoiCall& call, const void* gradient, float* const maps[4], cudaStream_t stream) {
  const RoiLaunch launch(call, kCount);
  const FourMaps<float> four{{maps[0], maps[1], maps[2], maps[3]}};
  roi_backward_kernel<Value, kCount>
      <<<launch.grid, launch.block, 0, stream>>>(call, static_cast<const Value*>(gradient), four);
}

}  // namespace

void anchors(const AnchorLevels& levels, float* out, cudaStream_t stream) {
  const int64_t count = levels.first[levels.count];
  if (count == 0) return;
  anchors_kernel<<<blocks_for(count), kThreads, 0, stream>>>(levels, out);
  check_launch("anchors");
}

void decode_boxes(const float* boxes, const float* deltas, const float* shown, const Coder& coder, int64_t images,
                  int64_t per_image, int64_t each, float* out, cudaStream_t stream) {
  const int64_t count = images * per_image * each;
  if (count == 0) return;
  decode_kernel<<<blocks_for(count), kThreads, 0, stream>>>(boxes, deltas, shown, weights_of(coder), count, per_image,
                                                            each, out);
  check_launch("decode_boxes");
}

void encode_boxes(const float* boxes, const float* wanted, const Coder& coder, int64_t count, float* out,
                  cudaStream_t stream) {
  if (count == 0) return;
  encode_kernel<<<blocks_for(count), kThreads, 0, stream>>>(boxes, wanted, weights_of(coder), count, out);
  check_launch("encode_boxes");
}

void nms(const NmsCall& call, cudaStream_t stream) {
  if (call.images == 0) return;
  const int64_t words = (call.count + kTile - 1) / kTile;
  if (words > 0) {
    const dim3 grid(static_cast<unsigned>(words), static_cast<unsigned>(words), static_cast<unsigned>(call.images));
    repeats_kernel<<<grid, kTile, 0, stream>>>(call, words);
    check_launch("nms");
  }
  sweep_kernel<<<static_cast<unsigned>(call.images), kThreads, static_cast<size_t>(words) * sizeof(uint64_t), stream>>>(
      call, words);
  check_launch("nms");
}

void match(const MatchCall& call, cudaStream_t stream) {
  if (call.images == 0 || call.count == 0) return;
  const dim3 grid(blocks_for(call.count), static_cast<unsigned>(call.images));
  if (call.most != nullptr) most_kernel<<<grid, kThreads, 0, stream>>>(call);
  match_kernel<<<grid, kThreads, 0, stream>>>(call);
  check_launch("match");
}

void roi_align(const RoiCall& call, Number number, const void* const maps[4], void* out, cudaStream_t stream) {
  if (call.images * call.per_image == 0) return;
  const bool packs = call.channels % 4 == 0;
  if (number == Number::fp32) {
    packs ? launch_roi<float, 4>(call, maps, out, stream) : launch_roi<float, 1>(call, maps, out, stream);
  } else if (number == Number::bf16) {
    packs ? launch_roi<__nv_bfloat16, 4>(call, maps, out, stream)
          : launch_roi<__nv_bfloat16, 1>(call, maps, out, stream);
  } else {
    packs ? launch_roi<__half, 4>(call, maps, out, stream) : launch_roi<__half, 1>(call, maps, out, stream);
  }
  check_launch("roi_align");
}

void roi_align_backward(const RoiCall& call, Number number, const void* gradient, float* const maps[4],
                        cudaStream_t stream) {
  if (call.images * call.per_image == 0) return;
  const bool packs = call.channels % 4 == 0;
  if (number == Number::fp32) {
    packs ? launch_roi_backward<float, 4>(call, gradient, maps, stream)
          : launch_roi_backward<float, 1>(call, gradient, maps, stream);
  } else if (number == Number::bf16) {
    packs ? launch_roi_backward<__nv_bfloat16, 4>(call, gradient, maps, stream)
          : launch_roi_backward<__nv_bfloat16, 1>(call, gradient, maps, stream);
  } else {
    packs ? launch_roi_backward<__half, 4>(call, gradient, maps, stream)
          : launch_roi_backward<__half, 1>(call, gradient, maps, stream);
  }
  check_launch("roi_align_backward");
}

void mask_targets(const MaskCall& call, cudaStream_t stream) {
  if (call.images * call.per_image == 0) return;
  const size_t memory = 3 * static_cast<size_t>(call.size * call.cells) * sizeof(float);
  if (memory > 48U << 10) {  // more than a kernel gets unasked
    cudaFuncSetAttribute(mask_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(memory));
  }
  mask_kernel<<<static_cast<unsigned>(call.images * call.per_image), kThreads, memory, stream>>>(call);
  check_launch("mask_targets");
}

}  // namespace lockstep_cuda_internal
