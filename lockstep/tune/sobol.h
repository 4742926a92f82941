// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::tune {

// Points that fill the unit cube evenly: Sobol's sequence with the direction numbers of Joe and Kuo (2008),
// new-joe-kuo-6.21201, in 32 bits. Shifted by a random number per dimension (digital shift), so that each point alone
// is uniform; seed 0 leaves the plain sequence, which begins with the origin.
class Sobol {
 public:
  static constexpr int64_t kMostDimensions = 64;

  Sobol(int64_t dimensions, uint64_t seed);         // REQUIRES: 1 to kMostDimensions
  std::vector<double> point(uint64_t index) const;  // in [0, 1). REQUIRES: index < 2^32

 private:
  int64_t dimensions_;
  std::vector<uint32_t> directions_;  // [dimension, bit]
  std::vector<uint32_t> shift_;
};

}  // namespace lockstep::tune
