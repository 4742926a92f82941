// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

namespace lockstep::forecast {

// Where cudaMalloc puts segments: addresses decide which of two equally good blocks the allocator takes, and that
// decides how many segments it needs. Seen on an H200 (driver 580): the driver takes regions of 32 MiB of address space
// (or a multiple for a larger segment), each below the last one; a segment lies at the low end of its region, and
// later segments that fit fill what is left of earlier regions.
class AddressSpace {
 public:
  int64_t take(int64_t size);  // REQUIRES: a multiple of 2 MiB
  // Address space for an expandable segment: a range of its own, below everything.
  int64_t reserve(int64_t size);
  void give(int64_t address, int64_t size);  // what take() did not hand out is ignored

 private:
  int64_t lowest_ = int64_t{1} << 46;
  std::map<int64_t, int64_t> holes_;  // address -> size, never adjacent
  std::map<int64_t, int64_t> taken_;
};

}  // namespace lockstep::forecast
