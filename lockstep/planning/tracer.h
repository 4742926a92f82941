// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/forecast/attention.h"
#include "lockstep/forecast/recording.h"
#include "lockstep/forecast/run_rules.h"
#include "lockstep/spec/job.h"

namespace lockstep::planning {

// What of a simulated GPU and its rank changes the operators of a pass.
struct SimulatedRank {
  std::optional<forecast::Attention> attention = {};  // the kernel that the GPU takes; none: it makes no difference
  int64_t ranks = 1;                                  // of the run
  int64_t rows = 0;                                   // samples of this rank in a step
  int64_t evaluation_rows = 0;                        // of an evaluation between two steps; 0: none
  std::optional<spec::Phase> phase = {};              // of the job; none: the whole network is trained
  bool fills = false;                                 // a cache of features: the pass of the phase's frozen blocks
  bool graph = true;                                  // there are steps enough for a CUDA graph (run/capture.h)

  bool operator==(const SimulatedRank&) const = default;
};

using forecast::NormCheck;

// All that a plan needs a network for: handed in, so that a plan itself is made without libtorch.
class Tracer {
 public:
  virtual ~Tracer() = default;
  // The job's own step; an evaluation pass, or the one that fills a cache.
  virtual forecast::Recording step(const spec::Job& job, const SimulatedRank& rank) = 0;
  virtual forecast::Recording evaluation(const spec::Job& job, const SimulatedRank& rank) = 0;
  // What a rank keeps of cached features, by phase; nothing where the job caches none.
  virtual std::vector<run::FeatureNeeds> features(const spec::Job& job, int64_t samples) = 0;
  // Whether some batch norm of the job's network would see one value a channel.
  virtual NormCheck norm_check() = 0;
};

}  // namespace lockstep::planning
