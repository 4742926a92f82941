// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/rank_rules.h"

#include <algorithm>
#include <functional>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::spec {

using base::Blame;
using base::Error;
using base::text;

std::vector<int64_t> smaller_slices(const Training& training, int64_t ranks) {
  const int64_t parts = std::max(ranks, training.virtual_ranks);
  std::set<int64_t, std::greater<>> sizes;
  for (const int64_t share : {training.global_batch / parts, (training.global_batch + parts - 1) / parts}) {
    const int64_t micro = training.micro_batch > 0 ? std::min(training.micro_batch, share) : share;
    if (micro < 1) continue;
    for (const int64_t rows : {micro, share % micro}) sizes.insert(rows % training.ghost_batch);
  }
  sizes.erase(0);
  return {sizes.begin(), sizes.end()};
}

void check_slices_on_ranks(const Training& training, int64_t ranks) {
  if (training.virtual_ranks == 0 || ranks <= training.virtual_ranks) return;
  throw Error(Blame::user, text(ranks, " ranks share ", training.virtual_ranks, " slices (training.virtual_ranks)"),
              text("start ", training.virtual_ranks, " ranks or fewer; more slices mean other bits, so a new run"));
}

void check_batch_on_ranks(const Training& training, int64_t ranks) {
  check_slices_on_ranks(training, ranks);
  if (ranks > training.global_batch) {
    throw Error(Blame::user,
                text(ranks, " ranks for a training.global_batch of ", training.global_batch, ": ",
                     ranks - training.global_batch, " of them would never have a sample"),
                text("start ", training.global_batch, " ranks at most, or --set training.global_batch=", ranks));
  }
  const int64_t share = training.global_batch / ranks;  // the smallest
  if (training.ghost_batch > share) {
    throw Error(Blame::user,
                text("training.ghost_batch is ", training.ghost_batch, ", but of a batch of ", training.global_batch,
                     " each of ", ranks, " ranks has ", share, " samples"),
                text("--set training.ghost_batch=", share, ", fewer ranks, or a larger training.global_batch"));
  }
  if (training.batch_norm != BatchNorm::ghost) return;
  const auto smaller = smaller_slices(training, ranks);
  if (!smaller.empty() && smaller.back() == 1 && training.ghost_batch > 1) {
    throw Error(
        Blame::user,
        text("training.ghost_batch is ", training.ghost_batch, ", and of a batch of ", training.global_batch, " on ",
             ranks, ranks == 1 ? " rank" : " ranks", " a slice of one sample is left, which has no statistics"),
        "a training.ghost_batch that divides the share of every rank, or another number of ranks");
  }
}

}  // namespace lockstep::spec
