// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace lockstep::loader {

// Memory of files of all sizes, in few sizes: what one leaves the next can take. Pieces made and freed to measure leave
// holes in the heap that nobody counts, and resident memory creeps for hours.
class FileMemory {
 public:
  explicit FileMemory(int64_t budget) : budget_(budget) {}

  // What a file of `size` bytes takes: at most a quarter more.
  static int64_t room_of(int64_t size);

  // Another one of that size fits into the budget; a single one always.
  bool has_room(int64_t size) const { return lent_ == 0 || lent_ + room_of(size) <= budget_; }

  // Counts it, before its memory is there.
  void reserve(int64_t size) { lent_ += room_of(size); }
  void release(int64_t size) { lent_ -= room_of(size); }
  // REQUIRES: reserved. Spare pieces of other sizes go where it needs their room.
  std::vector<std::byte> find(int64_t size);
  // Releases it too. REQUIRES: of the size that it was found with.
  void give_back(std::vector<std::byte>&& memory);

  int64_t bytes() const { return lent_ + spare_bytes_; }

 private:
  const int64_t budget_;
  int64_t lent_ = 0;
  int64_t spare_bytes_ = 0;
  std::map<int64_t, std::vector<std::vector<std::byte>>> spare_;  // by their room
};

}  // namespace lockstep::loader
