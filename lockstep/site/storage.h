// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/base/file.h"

namespace lockstep::site {

// The file system under a folder.
struct Storage {
  std::string role;  // "here", "home", "temporary"
  std::string folder;
  std::string type;  // as the kernel names it: "ext4", "lustre", "nfs", "tmpfs"
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;   // for this user
  uint64_t free_inodes = 0;  // 0 with total_inodes 0: the file system does not count them
  uint64_t total_inodes = 0;
  bool writable = false;
  std::optional<double> write_rate;  // bytes per second, measured, to the disk
  std::optional<double> read_rate;   // likewise, not out of the page cache where the kernel obeys
};

Storage read_storage(const std::string& role, const base::Path& folder);

struct RateLimits {
  uint64_t bytes = uint64_t{64} << 20;
  std::chrono::milliseconds time{900};  // both directions together
};

// Writes and reads a nameless temporary file in the folder and fills in the rates. Leaves nothing behind; when the
// folder cannot be written to, the rates stay empty. Never call it on a login node.
void measure_rates(Storage& storage, const RateLimits& limits = {});

// Shared by all nodes of a cluster (or served over a network).
bool is_network(const std::string& type);

// "ext4" etc. of the mount that `folder` is under, out of /proc/self/mounts.
std::string mount_type(const std::string& mounts, const std::string& folder);

}  // namespace lockstep::site
