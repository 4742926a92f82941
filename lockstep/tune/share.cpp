// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/share.h"

#include <sched.h>

namespace lockstep::tune {

std::vector<Share> share_out(int64_t trials, int64_t ranks, const std::vector<int>& cores,
                             const std::vector<std::string>& gpus) {
  const auto count = static_cast<size_t>(trials);
  const auto each = static_cast<size_t>(ranks);
  std::vector<Share> shares(count);
  for (size_t i = 0; i < count; ++i) {
    if (cores.size() >= count && count > 1) {
      const auto from = static_cast<long>(i * cores.size() / count);
      const auto to = static_cast<long>((i + 1) * cores.size() / count);
      shares[i].cores.assign(cores.begin() + from, cores.begin() + to);
    }
    for (size_t j = i * each; j < (i + 1) * each && j < gpus.size(); ++j) shares[i].gpus.push_back(gpus[j]);
  }
  return shares;
}

std::vector<int> own_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<size_t>(core), &set)) cores.push_back(core);
  }
  return cores;
}

}  // namespace lockstep::tune
