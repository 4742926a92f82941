// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::site {

// What this user may still put onto a file system. Nothing: no limit, or nobody here says (a file system's own free
// space does not know it).
struct Quota {
  std::optional<int64_t> free_bytes;
  std::optional<int64_t> free_files;
  std::string unanswered = "";  // the command that took too long to say

  bool operator==(const Quota&) const = default;
};

// The least of what this user and the group of new files there have left. Asks `lfs quota` on Lustre and `quota`
// elsewhere, each for `patience` at most. `type` as Storage has it.
Quota read_quota(const std::string& folder, const std::string& type,
                 std::chrono::milliseconds patience = std::chrono::seconds(5));

// Out of the row that both commands print: FILESYSTEM, KiB used, soft limit, hard limit, grace, then files likewise.
// The hard limit counts, the soft one where there is no hard one; 0 is no limit.
Quota parse_quota(std::string_view output);

}  // namespace lockstep::site
