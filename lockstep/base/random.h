// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace lockstep::base {

// Philox4x32-10, a counter-based generator: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// A seed of its own for one purpose ("augment", "order"), so that two purposes never share numbers.
uint64_t derive_seed(uint64_t seed, std::string_view purpose);

// The random numbers that belong to (seed, stream, index), e.g. (job seed, epoch, sample): whoever draws them, in
// whatever thread and order, draws the same. Costs nothing to make; holds 2^34 words.
class Random {
 public:
  Random(uint64_t seed, uint32_t stream = 0, uint64_t index = 0);

  uint32_t bits();    // 32 random bits
  uint64_t bits64();  // 64 random bits
  double uniform();   // [0, 1), 53 bits
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  int64_t below(int64_t bound);     // 0 .. bound - 1, without bias. REQUIRES: bound > 0
  double normal();                  // mean 0, deviation 1
  bool chance(double probability);  // true that often

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  uint32_t used_ = 4;
};

}  // namespace lockstep::base
