// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/near_duplicates.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>

#include "lockstep/image/decode.h"

namespace lockstep::trust {
namespace {

constexpr int64_t kSide = 32, kLow = 8;

using Frequencies = std::array<double, kLow * kSide>;

// cos(pi u (2x + 1) / (2 * 32)): [u, x]
const Frequencies& cosines() {
  static const Frequencies table = [] {
    Frequencies all{};
    for (int64_t u = 0; u < kLow; ++u) {
      for (int64_t x = 0; x < kSide; ++x) {
        all[static_cast<size_t>(u * kSide + x)] =
            std::cos(std::numbers::pi * static_cast<double>(u * (2 * x + 1)) / static_cast<double>(2 * kSide));
      }
    }
    return all;
  }();
  return table;
}

}  // namespace

uint64_t perceptual_hash(const image::Image& image) {
  const image::Image small = image::resize_image(image, kSide, kSide);
  const Frequencies& wave = cosines();
  Frequencies rows{};  // [v, x]: transformed down the columns
  for (int64_t y = 0; y < kSide; ++y) {
    for (int64_t x = 0; x < kSide; ++x) {
      const uint8_t* pixel = small.row(y) + 3 * x;
      const double grey = 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2];
      for (int64_t v = 0; v < kLow; ++v) {
        rows[static_cast<size_t>(v * kSide + x)] += grey * wave[static_cast<size_t>(v * kSide + y)];
      }
    }
  }
  std::array<double, kLow * kLow> low{};
  for (int64_t v = 0; v < kLow; ++v) {
    for (int64_t u = 0; u < kLow; ++u) {
      for (int64_t x = 0; x < kSide; ++x) {
        low[static_cast<size_t>(v * kLow + u)] +=
            rows[static_cast<size_t>(v * kSide + x)] * wave[static_cast<size_t>(u * kSide + x)];
      }
    }
  }
  auto sorted = low;
  std::sort(sorted.begin(), sorted.end());
  const double median = (sorted[31] + sorted[32]) / 2;
  uint64_t bits = 0;
  for (size_t i = 0; i < low.size(); ++i) bits |= uint64_t{low[i] > median ? 1U : 0U} << i;
  return bits;
}

std::vector<NearPair> near_pairs(std::span<const uint64_t> a, std::span<const uint64_t> b, int most) {
  std::vector<NearPair> pairs;
  for (size_t i = 0; i < a.size(); ++i) {
    NearPair nearest{static_cast<int64_t>(i), -1, most + 1};
    for (size_t k = 0; k < b.size(); ++k) {
      const int bits = std::popcount(a[i] ^ b[k]);
      if (bits < nearest.bits) nearest.b = static_cast<int64_t>(k), nearest.bits = bits;
    }
    if (nearest.b >= 0) pairs.push_back(nearest);
  }
  return pairs;
}

}  // namespace lockstep::trust
