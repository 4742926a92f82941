// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define LOCKSTEP_HOST_DEVICE __host__ __device__
#else
#define LOCKSTEP_HOST_DEVICE
#endif

// What the operators compute of one box: the same text for CPU and GPU. No libtorch.
namespace lockstep::kernel {

struct Box {
  float x1, y1, x2, y2;  // pixels

  LOCKSTEP_HOST_DEVICE float width() const { return x2 - x1; }
  LOCKSTEP_HOST_DEVICE float height() const { return y2 - y1; }
  LOCKSTEP_HOST_DEVICE float area() const { return (x2 - x1) * (y2 - y1); }
};

LOCKSTEP_HOST_DEVICE inline float larger(float a, float b) {
  return a > b ? a : b;
}

LOCKSTEP_HOST_DEVICE inline float smaller(float a, float b) {
  return a < b ? a : b;
}

// Intersection over union; 0 for boxes without area.
LOCKSTEP_HOST_DEVICE inline float overlap(const Box& a, const Box& b) {
  const float width = larger(0, smaller(a.x2, b.x2) - larger(a.x1, b.x1));
  const float height = larger(0, smaller(a.y2, b.y2) - larger(a.y1, b.y1));
  const float common = width * height;
  return common > 0 ? common / (a.area() + b.area() - common) : 0;
}

struct CoderWeights {
  float x, y, width, height;
};

constexpr float kMostGrowth = 4.135166556742356F;  // ln(1000 / 16): of width and height

// `from`, moved and scaled by the deltas, within [0, shown_width] x [0, shown_height].
LOCKSTEP_HOST_DEVICE inline Box decode(const Box& from, const float* deltas, const CoderWeights& weights,
                                       float shown_height, float shown_width) {
  const float x = deltas[0] / weights.x * from.width() + (from.x1 + 0.5F * from.width());
  const float y = deltas[1] / weights.y * from.height() + (from.y1 + 0.5F * from.height());
  const float half_width = 0.5F * (std::exp(smaller(deltas[2] / weights.width, kMostGrowth)) * from.width());
  const float half_height = 0.5F * (std::exp(smaller(deltas[3] / weights.height, kMostGrowth)) * from.height());
  return {smaller(larger(x - half_width, 0), shown_width), smaller(larger(y - half_height, 0), shown_height),
          smaller(larger(x + half_width, 0), shown_width), smaller(larger(y + half_height, 0), shown_height)};
}

// The deltas that decode() turns into `wanted`; 0 where a box has no area.
LOCKSTEP_HOST_DEVICE inline void encode(const Box& from, const Box& wanted, const CoderWeights& weights,
                                        float* deltas) {
  if (!(from.width() > 0 && from.height() > 0 && wanted.width() > 0 && wanted.height() > 0)) {
    deltas[0] = deltas[1] = deltas[2] = deltas[3] = 0;
    return;
  }
  const float x = wanted.x1 + 0.5F * wanted.width() - (from.x1 + 0.5F * from.width());
  const float y = wanted.y1 + 0.5F * wanted.height() - (from.y1 + 0.5F * from.height());
  deltas[0] = weights.x * x / from.width();
  deltas[1] = weights.y * y / from.height();
  deltas[2] = weights.width * std::log(wanted.width() / from.width());
  deltas[3] = weights.height * std::log(wanted.height() / from.height());
}

constexpr int64_t kLevels = 4;       // maps of a pyramid that regions are read from, strides 4 to 32
constexpr int64_t kFirstStride = 4;  // pixels of the image to one of the finest map

// Which of them a box is read from (Lin et al. 2016, arXiv 1612.03144, equation 1): 224 pixels from the third.
LOCKSTEP_HOST_DEVICE inline int64_t level_of(const Box& box) {
  const float side = std::sqrt(larger(box.area(), 0));
  const float level = std::floor(4.0F + std::log2(side / 224.0F) + 1e-6F);  // -infinity for a box without area
  return static_cast<int64_t>(smaller(larger(level, 2), 2 + kLevels - 1)) - 2;
}

// One direction of a region that is cut into bins, in pixels of the map that it is read from; a pixel's value lies at
// its index.
struct BinAxis {
  float start, bin;

  LOCKSTEP_HOST_DEVICE BinAxis(float from, float to, float scale, int64_t bins)
      : start(from * scale), bin(larger(to * scale - from * scale, 1) / static_cast<float>(bins)) {}
  LOCKSTEP_HOST_DEVICE float sample(int64_t index, int64_t i, int64_t samples) const {
    return start + static_cast<float>(index) * bin + (static_cast<float>(i) + 0.5F) * bin / static_cast<float>(samples);
  }
};

// The two pixels between which a position lies, in one direction; both weights are 0 beyond the map.
struct PixelPair {
  int64_t low, high;
  float low_weight, high_weight;
};

LOCKSTEP_HOST_DEVICE inline PixelPair pixels_at(float position, int64_t size) {
  if (!(position >= -1 && position <= static_cast<float>(size))) return {0, 0, 0, 0};
  const float inside = larger(position, 0);
  const auto low = static_cast<int64_t>(inside);
  if (low >= size - 1) return {size - 1, size - 1, 1, 0};
  const float part = inside - static_cast<float>(low);
  return {low, low + 1, 1 - part, part};
}

// One direction of an object's mask: how the stored cells lie in the image. The mask covers the whole pixels that the
// object's box touches, [floor(from), ceil(to)), a cell a pixel where that is no more than `most`, else `most` cells of
// equal size.
struct MaskAxis {
  float origin;
  float cells_per_pixel;
  int64_t cells;

  LOCKSTEP_HOST_DEVICE MaskAxis(float from, float to, int64_t most) : origin(std::floor(from)) {
    const float pixels = larger(std::ceil(to) - origin, 1);
    cells = pixels < static_cast<float>(most) ? static_cast<int64_t>(pixels) : most;
    cells_per_pixel = static_cast<float>(cells) / pixels;
  }
  // Of a pixel's index, in cells; a cell's value lies at its index too.
  LOCKSTEP_HOST_DEVICE float cell_at(float pixel) const { return (pixel + 0.5F - origin) * cells_per_pixel - 0.5F; }
};

}  // namespace lockstep::kernel
