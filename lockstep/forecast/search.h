// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockstep/forecast/option.h"

namespace lockstep::forecast {

LOCKSTEP_CHOICE(Lever, precision, micro_batch, recompute, zero)

// The levers that the step supports. Others are not offered.
struct Reach {
  std::vector<std::string> precisions = {};  // spec::Precision's, as far as the GPU has units for them
  bool recompute = false;
  bool micro_batch = true;
  int64_t zero = 0;   // the highest level with which several ranks can cut what they keep; 0: none
  bool plain = true;  // false: what each rank keeps whole does not fit; only partitioned it may
};

// What recomputing one block gives.
struct BlockSaving {
  std::string block = {};
  double bytes = 0;  // of activations that need not be kept, for each sample of a pass
};
// From the trace: the activations that live from a block's forward to its backward. In the order of the network, in
// which they are recomputed too: what comes first is needed again last, when the activations of the others are gone,
// and no precision, GPU or batch changes that order. Blocks that save nothing are left out.
std::vector<BlockSaving> block_savings(const Recording& recording);
// Blocks that are recomputed together: the first quarter of them, two, three. So few, so that GPUs and batches share
// traces. All of them are "all", and not among these.
struct RecomputeSet {
  std::vector<std::string> blocks = {};
  double bytes = 0;  // that they save, for each sample of a pass
};
std::vector<RecomputeSet> recompute_sets(const std::vector<BlockSaving>& order);

struct Found {
  Levers levers = {};
  Trial trial = {};
};
// The fastest levers with which the job fits the machine option, the job's own included; nothing when none does.
// `try_levers` tries one set (it is asked some dozens of times), `find_savings` has block_savings() of a step that was
// tried.
using TryLevers = std::function<Trial(const Levers&)>;
using FindSavings = std::function<std::vector<BlockSaving>(const TraceKey&)>;
std::optional<Found> search(const Levers& written, int64_t rows, const Reach& reach, const FindSavings& find_savings,
                            const TryLevers& try_levers);

// The precisions worth trying on that GPU: those the step has and the GPU computes in.
std::vector<std::string> precisions_for(const catalogue::Gpu* gpu, const std::vector<std::string>& of_the_step);

// "training.micro_batch=64", ...: what differs, as --set takes it.
std::vector<std::string> list_changes(const Levers& written, const Levers& found);

// Which options win; -1: none. `cheapest` by the lowest rent in one currency, or, where nobody rents out any of them,
// by energy.
struct Best {
  int64_t fastest = -1;
  int64_t cheapest = -1;
  int64_t smallest = -1;  // least GPU memory in all
  std::string cheapest_by = {};
};
Best find_best(const std::vector<Option>& options);
// Tells each option that is not the best why: "3.1 times slower than h200 x1".
void compare(std::vector<Option>& options, const Best& best);

}  // namespace lockstep::forecast
