// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/kept_rows.h"

#include <iterator>

namespace lockstep::task {

bool WorstRecords::takes(double mark, int64_t id) const {
  return records_.size() < most_ || (most_ > 0 && Key{mark, id} < records_.rbegin()->first);
}

void WorstRecords::add(double mark, int64_t id, base::Json record) {
  records_.emplace(Key{mark, id}, std::move(record));
  if (records_.size() > most_) records_.erase(std::prev(records_.end()));
}

std::string WorstRecords::pack() const {
  std::vector<std::string> parts;
  parts.reserve(3 * records_.size());
  for (const auto& [key, record] : records_) {
    parts.emplace_back(reinterpret_cast<const char*>(&key.first), sizeof key.first);
    parts.emplace_back(reinterpret_cast<const char*>(&key.second), sizeof key.second);
    parts.push_back(record.dump(-1));
  }
  return join_parts(parts);
}

void WorstRecords::merge(std::string_view packed) {
  const auto take = [&packed](auto& number) {
    const std::string_view part = next_part(packed);
    base::ensure(part.size() == sizeof number, "ranks hand over whole scores");
    std::memcpy(&number, part.data(), sizeof number);
  };
  while (!packed.empty()) {
    Key key;
    take(key.first);
    take(key.second);
    const std::string_view record = next_part(packed);
    add(key.first, key.second, base::parse_json(record, "a record of a rank", {.max_bytes = record.size()}));
  }
}

std::string join_parts(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) {
    const auto size = static_cast<uint64_t>(part.size());
    all.append(reinterpret_cast<const char*>(&size), sizeof size).append(part);
  }
  return all;
}

std::string_view next_part(std::string_view& packed) {
  uint64_t size = 0;
  base::ensure(packed.size() >= sizeof size, "ranks hand over whole scores");
  std::memcpy(&size, packed.data(), sizeof size);
  base::ensure(packed.size() - sizeof size >= size, "ranks hand over whole scores");
  const std::string_view part = packed.substr(sizeof size, size);
  packed.remove_prefix(sizeof size + size);
  return part;
}

}  // namespace lockstep::task
