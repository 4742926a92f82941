// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace lockstep::site {

// What `ulimit` says, soft (in force) and hard (as far as the user may raise it). Nothing: unlimited.
struct Limit {
  std::optional<uint64_t> soft;
  std::optional<uint64_t> hard;

  bool allows(uint64_t wanted) const { return !soft || *soft >= wanted; }
  bool can_allow(uint64_t wanted) const { return !hard || *hard >= wanted; }
};

struct Limits {
  Limit open_files;
  Limit locked_bytes;
  Limit stack_bytes;
  Limit address_bytes;
  Limit processes;
  Limit core_bytes;
};

Limits read_limits();

}  // namespace lockstep::site
