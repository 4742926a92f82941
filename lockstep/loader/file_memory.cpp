// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/file_memory.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace lockstep::loader {

int64_t FileMemory::room_of(int64_t size) {
  const auto octave = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(size, 4))));
  const int64_t step = octave / 4;
  return (size + step - 1) / step * step;
}

std::vector<std::byte> FileMemory::find(int64_t size) {
  std::vector<std::byte> memory;
  const int64_t room = room_of(size);
  if (auto& pieces = spare_[room]; !pieces.empty()) {
    memory = std::move(pieces.back());
    pieces.pop_back();
    spare_bytes_ -= room;
  }
  for (auto& [other, pieces] : spare_) {
    for (; bytes() > budget_ && !pieces.empty(); spare_bytes_ -= other) pieces.pop_back();
  }
  memory.reserve(static_cast<size_t>(room));
  memory.resize(static_cast<size_t>(size));
  return memory;
}

void FileMemory::give_back(std::vector<std::byte>&& memory) {
  const int64_t room = room_of(static_cast<int64_t>(memory.size()));
  lent_ -= room;
  if (room == 0 || bytes() + room > budget_) return;
  spare_[room].push_back(std::move(memory));
  spare_bytes_ += room;
}

}  // namespace lockstep::loader
