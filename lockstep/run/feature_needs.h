// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::run {

// All that the ranks of one node keep at once in one phase: of training and validation samples together.
struct FeatureNeeds {
  std::string train_from = {};
  int64_t samples = 0;
  int64_t row_bytes = 0;

  int64_t bytes() const { return samples * row_bytes; }  // of one rank: each keeps all of them
};
// User error that names the bytes when they are more than the node's memory; to be asked before anything is computed.
void check_feature_memory(const FeatureNeeds& needs, int64_t local_ranks, int64_t node_memory);

}  // namespace lockstep::run
