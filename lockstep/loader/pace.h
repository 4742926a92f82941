// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/base/json.h"

namespace lockstep::loader {

// What a loader's threads were busy with, in seconds of all of them together.
struct PipelineSeconds {
  double read = 0;
  double decode = 0;
  double augment = 0;  // crop, resize, flip, colour, normalise
  double copy = 0;     // finding and clearing the batches' memory
  int64_t samples = 0;

  double sum() const { return read + decode + augment + copy; }
  PipelineSeconds operator-(const PipelineSeconds& earlier) const;
  PipelineSeconds& operator+=(const PipelineSeconds& more);
};

// One interval of training: what the loader did, and how long the steps waited.
struct Pace {
  PipelineSeconds pipeline;
  int64_t threads = 1;
  double seconds = 0;  // of the steps, waiting and all
  double waited = 0;   // of these, for batches
  bool from_shards = false;
};

// The loader holds the training back.
struct Bottleneck {
  std::string pipeline_stage;       // the one that takes most: "read", "decode", "augment" or "copy"
  double pipeline_stage_share = 0;  // of the loader's busy time
  double waited_share = 0;          // of the steps' time
  double threads_needed = 0;        // so that nobody waits, at the cost per sample that was seen
  int64_t more_cores = 0;           // beyond the threads there are
  bool from_shards = false;

  base::Json to_json() const;
  std::string to_text() const;  // one sentence: which pipeline stage, by how much, what would help
};

// Nothing while the steps wait for less than 5 % of their time.
std::optional<Bottleneck> find_bottleneck(const Pace& pace);

}  // namespace lockstep::loader
