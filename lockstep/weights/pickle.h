// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::weights {

// What a pickle describes, as plain data. Values refer to each other by index into one table: a hostile file can make
// neither a deep recursion nor a copy of anything.
struct PickleValue {
  enum class Kind { none, boolean, integer, real, bytes, string, tuple, list, dict, global, call, persistent };
  Kind kind = Kind::none;
  int64_t integer = 0;          // boolean, integer
  double real = 0;              // real
  std::string text;             // string; bytes (integers beyond 64 bits); global: "module.name"
  std::vector<uint32_t> items;  // tuple, list; dict: key, value, key, value; call: callable, arguments; persistent: id
};

struct Pickle {
  std::vector<PickleValue> values;
  uint32_t root = 0;
  size_t bytes_read = 0;  // several pickles may stand one behind the other

  const PickleValue& at(uint32_t index) const { return values[index]; }
};

// Reads one pickle (protocols 2 to 5) without executing anything. Only the names in `allowed` may be referred to; any
// other is a user error that says what the file asked to run. The same for opcodes that weights never need, and for
// more than `max_values` values. A call of an allowed name stays a description of that call.
Pickle read_pickle(std::span<const std::byte> content, std::span<const std::string_view> allowed,
                   const std::string& source, size_t max_values = 2'000'000);

}  // namespace lockstep::weights
