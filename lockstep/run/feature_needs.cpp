// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/feature_needs.h"

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"

namespace lockstep::run {

void check_feature_memory(const FeatureNeeds& needs, int64_t local_ranks, int64_t node_memory) {
  const int64_t bytes = needs.bytes() * local_ranks;
  if (bytes <= node_memory) return;
  const auto shown = [](int64_t count) { return base::format_bytes(static_cast<double>(count)); };
  throw base::Error(
      base::Blame::user,
      base::text("cached features of ", needs.samples, " samples before block '", needs.train_from, "' take ",
                 shown(bytes), " of a node's main memory (", shown(needs.row_bytes), " a sample, on each of ",
                 local_ranks, local_ranks == 1 ? " rank" : " ranks", "); it has ", shown(node_memory)),
      "a later train_from (\"head\" has the smallest features), cache_features false in that phase, or fewer ranks a "
      "node");
}

}  // namespace lockstep::run
