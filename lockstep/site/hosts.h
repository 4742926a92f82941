// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/site/scheduler.h"

namespace lockstep::site {

// The hosts of this allocation, each once, in the scheduler's order; none outside one, or when it does not say.
std::vector<std::string> allocated_hosts(const Scheduler& scheduler);

// "n[1-3,07],login" -> n1 n2 n3 n07 login, as Slurm shortens its lists; user error for a list that is not one.
std::vector<std::string> expand_host_list(std::string_view list);

// So many ranks of a run on one host.
struct Share {
  std::string host;
  int64_t ranks = 0;

  bool operator==(const Share&) const = default;
};

// The ranks over the hosts in blocks that differ by one at most, the first hosts first; hosts without a rank are left
// out. REQUIRES: a host, a rank.
std::vector<Share> share_ranks(int64_t ranks, const std::vector<std::string>& hosts);

}  // namespace lockstep::site
