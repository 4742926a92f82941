// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lockstep/image/image.h"

namespace lockstep::image {

// One axis of a resize: output i shows the source interval [begin + i * scale, begin + (i + 1) * scale) and is made of
// the pixels low .. high - 1 only. scale > 1 shrinks, with a filter as much wider (antialiasing).
struct Axis {
  int64_t num_outputs = 0;
  double begin = 0;
  double scale = 1;
  int64_t low = 0;
  int64_t high = 0;
  bool reversed = false;  // output 0 is the last interval: a mirror

  bool operator==(const Axis&) const = default;
};

struct Normalisation {  // (value / 255 - mean) / std per channel
  std::array<float, 3> mean = {0, 0, 0};
  std::array<float, 3> std = {1, 1, 1};
};

// Where pixels go, [height, width, 3]: exactly one of the three.
struct PixelTarget {
  float* floats = nullptr;     // normalised
  uint16_t* halves = nullptr;  // normalised, bfloat16: the upper half of a float, rounded to even
  uint8_t* bytes = nullptr;    // 0 to 255, rounded, not normalised

  PixelTarget(float* out) : floats(out) {}     // NOLINT(google-explicit-constructor): any of them is a target
  PixelTarget(uint16_t* out) : halves(out) {}  // NOLINT(google-explicit-constructor)
  PixelTarget(uint8_t* out) : bytes(out) {}    // NOLINT(google-explicit-constructor)
};

enum class VectorUnit { plain, avx2, avx512 };
std::vector<VectorUnit> vector_units();  // those that this CPU has, the best last

// Crop, resize, mirror and normalise in one pass over the source: bilinear, triangle filter, single precision between
// the two directions. Keeps its tables' memory from one image to the next; one per thread. The result depends on the
// arguments alone, but for the last bit: avx2 and avx512 round once where plain rounds twice.
class Resampler {
 public:
  explicit Resampler(VectorUnit unit = vector_units().back()) : unit_(unit) {}

  // `out` is [y.num_outputs, x.num_outputs, 3]. REQUIRES: low < high, both within the image.
  void run(const Image& image, const Axis& x, const Axis& y, const Normalisation& normalisation, PixelTarget out);

  struct Taps {  // output i = sum over t < count of weights[i * count + t] * source[first[i] + t]
    int64_t count = 0;
    std::vector<int32_t> first;
    std::vector<float> weights;
  };
  static void fill(const Axis& axis, Taps& taps);

 private:
  VectorUnit unit_;
  Taps x_taps_;
  Taps y_taps_;
  std::vector<float> row_;
  std::vector<float> shown_row_;  // of halves and bytes, before they are packed
  std::vector<float> pair_weights_;
};

// Finished values as halves, or 0 .. 1 as bytes; the same roundings as the resampler's.
void pack_halves(const float* values, int64_t count, uint16_t* out);
void pack_bytes(const float* values, int64_t count, uint8_t* out);

}  // namespace lockstep::image
