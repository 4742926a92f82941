// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/address_space.h"

#include "lockstep/base/error.h"

namespace lockstep::forecast {
namespace {

constexpr int64_t kRegion = int64_t{32} << 20;

int64_t whole_regions(int64_t size) {
  return (size + kRegion - 1) / kRegion * kRegion;
}

}  // namespace

int64_t AddressSpace::take(int64_t size) {
  base::ensure(size > 0, "a segment has a size");
  auto hole = holes_.begin();
  while (hole != holes_.end() && hole->second < size) ++hole;
  int64_t address = 0;
  if (hole == holes_.end()) {
    address = reserve(size);
    if (whole_regions(size) > size) holes_[address + size] = whole_regions(size) - size;
  } else {
    address = hole->first;
    const int64_t left = hole->second - size;
    holes_.erase(hole);
    if (left > 0) holes_[address + size] = left;
  }
  taken_[address] = size;
  return address;
}

int64_t AddressSpace::reserve(int64_t size) {
  lowest_ -= whole_regions(size);
  return lowest_;
}

void AddressSpace::give(int64_t address, int64_t size) {
  const auto found = taken_.find(address);
  if (found == taken_.end() || found->second != size) return;
  taken_.erase(found);
  auto next = holes_.lower_bound(address);
  if (next != holes_.end() && next->first == address + size) {
    size += next->second;
    next = holes_.erase(next);
  }
  if (next != holes_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == address) {
      before->second += size;
      return;
    }
  }
  holes_[address] = size;
}

}  // namespace lockstep::forecast
