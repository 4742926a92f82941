// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::tune {

// What one of several trials on a node may use.
struct Share {
  std::vector<int> cores = {};  // empty: all, where there is not one for each trial
  std::vector<std::string> gpus = {};

  bool operator==(const Share&) const = default;
};

// `cores` and `gpus` for so many trials of so many ranks each: neighbouring cores, a GPU a rank.
std::vector<Share> share_out(int64_t trials, int64_t ranks, const std::vector<int>& cores,
                             const std::vector<std::string>& gpus);

// The cores that this process may use.
std::vector<int> own_cores();

}  // namespace lockstep::tune
