// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/forecast/attention.h"
#include "lockstep/forecast/memory.h"
#include "lockstep/forecast/recording.h"

namespace lockstep::forecast {

// Everything of a job, a GPU and a share of the batch that decides which operators a step calls.
struct TraceKey {
  std::string precision = {};               // as the job spells it
  std::vector<std::string> recompute = {};  // blocks, or "all"
  std::optional<Attention> attention = {};  // of the GPU; none: it makes no difference
  bool reduced = false;                     // more than one rank: gradients go through buckets
  int64_t micro_batch = 1;
  int64_t passes = 1;  // micro-batches of one step: 1, or 2 for "more than one"
  int64_t zero = 0;    // what of weights, gradients and optimizer state is cut over the ranks
  int64_t ranks = 0;   // over how many: where that decides, with zero, slices or batch norms in step; else 0
  int64_t slices = 0;  // of the whole batch, added up in one order (virtual ranks); `passes`: this rank's, all of them

  int64_t evaluation_rows = 0;  // samples of an evaluation pass between two steps; 0: none

  int64_t phase = -1;  // of the job's phases the one whose step it is; -1: the whole network is trained
  bool fills = false;  // the pass of its frozen blocks that fills the cache of features
  bool graph = true;   // the steps of that phase are enough for one to become a CUDA graph (run/capture.h)

  // NOLINTNEXTLINE(modernize-use-nullptr): the tool sees a 0 in it
  std::strong_ordering operator<=>(const TraceKey&) const = default;
};

// Every recording that a plan asks for, from few traces: a third micro-batch of the same step is computed from two
// that were traced (they are affine in it), and networks without attention are traced once for all kinds of it.
class Recordings {
 public:
  using Tracer = std::function<Recording(const TraceKey&)>;
  explicit Recordings(Tracer tracer) : tracer_(std::move(tracer)) {}

  const Recording& of(TraceKey trace_key);
  // Replays it, once for each set of rules. The GPU's capacity counts only where it is exceeded: a real allocator then
  // gives back what it cached, and may still succeed. `odd`: samples of a smaller batch beside a captured step; 0:
  // none.
  const MemoryForecast& memory(TraceKey trace_key, MemoryRules rules, int64_t odd = 0);

  int64_t num_traced() const { return num_traced_; }
  int64_t num_replayed() const { return static_cast<int64_t>(replays_.size()); }

 private:
  using Kept = std::map<int64_t, std::unique_ptr<Recording>>;  // by micro_batch
  // All that decides a replay.
  struct ReplayKey {
    TraceKey step;
    int64_t capacity = 0;
    bool expandable_segments = false;
    int64_t cublas_workspace = 0;
    int64_t context = 0;
    int64_t nccl = 0;
    int64_t warps = 0;  // 0: no sum of the step needs a buffer for each
    int64_t odd = 0;

    // NOLINTNEXTLINE(modernize-use-nullptr): the tool sees a 0 in it
    std::strong_ordering operator<=>(const ReplayKey&) const = default;
  };

  void settle(TraceKey& trace_key) const;  // what makes no difference becomes the same
  Recording trace(const TraceKey& trace_key);

  Tracer tracer_;
  std::map<TraceKey, Kept> traced_;    // by the key without its micro-batch
  std::map<TraceKey, Kept> computed_;  // likewise
  std::map<ReplayKey, MemoryForecast> replays_;
  std::map<std::pair<int64_t, bool>, bool> attention_matters_;  // by phase and `fills`: a head has none
  int64_t num_traced_ = 0;
};

}  // namespace lockstep::forecast
