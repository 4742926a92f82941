// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/sobol.h"

#include <array>
#include <bit>

#include "lockstep/base/error.h"
#include "lockstep/base/random.h"

namespace lockstep::tune {
namespace {

constexpr int kBits = 32;

// A primitive polynomial, its coefficients as bits, and the first direction numbers (S. Joe and F. Kuo, SIAM J. Sci.
// Comput. 30, 2635, 2008), from the second dimension on.
struct Generator {
  uint32_t polynomial;
  std::array<uint32_t, 9> first;
};
constexpr Generator kGenerators[] = {
    {3, {1}},
    {7, {1, 3}},
    {11, {1, 3, 1}},
    {13, {1, 1, 1}},
    {19, {1, 1, 3, 3}},
    {25, {1, 3, 5, 13}},
    {37, {1, 1, 5, 5, 17}},
    {41, {1, 1, 5, 5, 5}},
    {47, {1, 1, 7, 11, 19}},
    {55, {1, 1, 5, 1, 1}},
    {59, {1, 1, 1, 3, 11}},
    {61, {1, 3, 5, 5, 31}},
    {67, {1, 3, 3, 9, 7, 49}},
    {91, {1, 1, 1, 15, 21, 21}},
    {97, {1, 3, 1, 13, 27, 49}},
    {103, {1, 1, 1, 15, 7, 5}},
    {109, {1, 3, 1, 15, 13, 25}},
    {115, {1, 1, 5, 5, 19, 61}},
    {131, {1, 3, 7, 11, 23, 15, 103}},
    {137, {1, 3, 7, 13, 13, 15, 69}},
    {143, {1, 1, 3, 13, 7, 35, 63}},
    {145, {1, 3, 5, 9, 1, 25, 53}},
    {157, {1, 3, 1, 13, 9, 35, 107}},
    {167, {1, 3, 1, 5, 27, 61, 31}},
    {171, {1, 1, 5, 11, 19, 41, 61}},
    {185, {1, 3, 5, 3, 3, 13, 69}},
    {191, {1, 1, 7, 13, 1, 19, 1}},
    {193, {1, 3, 7, 5, 13, 19, 59}},
    {203, {1, 1, 3, 9, 25, 29, 41}},
    {211, {1, 3, 5, 13, 23, 1, 55}},
    {213, {1, 3, 7, 3, 13, 59, 17}},
    {229, {1, 3, 1, 3, 5, 53, 69}},
    {239, {1, 1, 5, 5, 23, 33, 13}},
    {241, {1, 1, 7, 7, 1, 61, 123}},
    {247, {1, 1, 7, 9, 13, 61, 49}},
    {253, {1, 3, 3, 5, 3, 55, 33}},
    {285, {1, 3, 1, 15, 31, 13, 49, 245}},
    {299, {1, 3, 5, 15, 31, 59, 63, 97}},
    {301, {1, 3, 1, 11, 11, 11, 77, 249}},
    {333, {1, 3, 1, 11, 27, 43, 71, 9}},
    {351, {1, 1, 7, 15, 21, 11, 81, 45}},
    {355, {1, 3, 7, 3, 25, 31, 65, 79}},
    {357, {1, 3, 1, 1, 19, 11, 3, 205}},
    {361, {1, 1, 5, 9, 19, 21, 29, 157}},
    {369, {1, 3, 7, 11, 1, 33, 89, 185}},
    {391, {1, 3, 3, 3, 15, 9, 79, 71}},
    {397, {1, 3, 7, 11, 15, 39, 119, 27}},
    {425, {1, 1, 3, 1, 11, 31, 97, 225}},
    {451, {1, 1, 1, 3, 23, 43, 57, 177}},
    {463, {1, 3, 7, 7, 17, 17, 37, 71}},
    {487, {1, 3, 1, 5, 27, 63, 123, 213}},
    {501, {1, 1, 3, 5, 11, 43, 53, 133}},
    {529, {1, 3, 5, 5, 29, 17, 47, 173, 479}},
    {539, {1, 3, 3, 11, 3, 1, 109, 9, 69}},
    {545, {1, 1, 1, 5, 17, 39, 23, 5, 343}},
    {557, {1, 3, 1, 5, 25, 15, 31, 103, 499}},
    {563, {1, 1, 1, 11, 11, 17, 63, 105, 183}},
    {601, {1, 1, 5, 11, 9, 29, 97, 231, 363}},
    {607, {1, 1, 5, 15, 19, 45, 41, 7, 383}},
    {617, {1, 3, 7, 7, 31, 19, 83, 137, 221}},
    {623, {1, 1, 1, 3, 23, 15, 111, 223, 83}},
    {631, {1, 1, 5, 13, 31, 15, 55, 25, 161}},
    {637, {1, 1, 3, 13, 25, 47, 39, 87, 257}},
};

}  // namespace

Sobol::Sobol(int64_t dimensions, uint64_t seed) : dimensions_(dimensions) {
  base::ensure(dimensions >= 1 && dimensions <= kMostDimensions, "Sobol points have 1 to 64 dimensions");
  for (int64_t d = 0; d < dimensions; ++d) {
    std::array<uint32_t, kBits> v{};
    if (d == 0) {
      for (int bit = 0; bit < kBits; ++bit) v[static_cast<size_t>(bit)] = uint32_t{1} << (kBits - 1 - bit);
    } else {
      const Generator& generator = kGenerators[d - 1];
      const int degree = std::bit_width(generator.polynomial) - 1;
      for (int bit = 0; bit < kBits; ++bit) {
        const auto at = static_cast<size_t>(bit);
        if (bit < degree) {
          v[at] = generator.first[at] << (kBits - 1 - bit);
          continue;
        }
        v[at] = v[at - static_cast<size_t>(degree)] ^ (v[at - static_cast<size_t>(degree)] >> degree);
        for (int k = 1; k < degree; ++k) {
          if ((generator.polynomial >> (degree - k)) & 1U) v[at] ^= v[at - static_cast<size_t>(k)];
        }
      }
    }
    directions_.insert(directions_.end(), v.begin(), v.end());
    shift_.push_back(seed == 0 ? 0
                               : base::Random(base::derive_seed(seed, "sobol"), 0, static_cast<uint64_t>(d)).bits());
  }
}

std::vector<double> Sobol::point(uint64_t index) const {
  std::vector<double> point;
  point.reserve(static_cast<size_t>(dimensions_));
  const auto gray = static_cast<uint32_t>(index ^ (index >> 1));
  for (int64_t d = 0; d < dimensions_; ++d) {
    uint32_t bits = shift_[static_cast<size_t>(d)];
    for (int bit = 0; bit < kBits; ++bit) {
      if ((gray >> bit) & 1U) bits ^= directions_[static_cast<size_t>(d * kBits + bit)];
    }
    point.push_back(bits * 0x1p-32);
  }
  return point;
}

}  // namespace lockstep::tune
