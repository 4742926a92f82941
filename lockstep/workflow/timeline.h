// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/spec/workflow.h"
#include "lockstep/workflow/stage_record.h"

namespace lockstep::workflow {

// One stage on the time axis of the workflow.
struct TimelineStage {
  std::string name;
  std::string kind;
  double seconds = 0;     // its wall time; 0: not known
  bool measured = false;  // it ran; else `expected` of the document
  double start = 0;       // as soon as what it waits for is done, from the beginning of the workflow
  double share = 0;       // of the whole; stages at the same time can add up to more than 1
  bool critical = false;  // the whole is shorter when it is
  double began = 0;       // Unix seconds, as it ran; 0: it did not
  double ended = 0;

  double end() const { return start + seconds; }
};

struct Timeline {
  std::vector<TimelineStage> stages;  // in the order of the document
  double whole = 0;                   // from the first start to the last end, without waiting in queues
  std::vector<std::string> unknown;   // stages of which no time is known
};
Timeline make_timeline(const spec::Workflow& workflow, const StatePaths& paths);

// The whole when the stages take these seconds, each starting when what it waits for is done.
double whole_time(const std::vector<std::vector<size_t>>& needs, const std::vector<double>& seconds);

// What is left of the whole, as a share, when a part of it (a share too) goes so many times as fast: Amdahl's sum.
double amdahl_sum(double part, double speedup);

// The whole when one stage is spread over another number of GPUs.
struct Spread {
  int64_t gpus = 0;
  double speedup = 0;         // of the stage, from the GPUs that its time is of
  double seconds = 0;         // of the whole
  double left = 0;            // of the whole, as a share
  double as_if_one_gpu = 0;   // the same where somebody takes the stage's time for one GPU's
  bool extrapolated = false;  // nobody measured this number of GPUs
};

// A stage that costs nothing any more: what its speeding up can bring at most.
struct Freed {
  std::string stage;
  double left = 0;     // of the whole, as a share
  double speedup = 0;  // of the whole
};

struct Amdahl {
  std::string stage;   // that is spread; empty: none can be
  int64_t gpus = 0;    // that its time is of
  bool ideal = false;  // no throughput was measured: so many GPUs, so many times as fast
  std::vector<Spread> spreads;
  double part = 0;                        // the stage's share, whole per cent rounded down, as slides have it
  std::vector<double> rounded;            // Amdahl's sum with that, for each of the spreads
  std::vector<double> rounded_as_if_one;  // likewise, taken for one GPU's
  std::vector<Freed> freed;               // the one that brings most first
  std::string next;      // the stage to speed up when the spread one has its most GPUs; empty: nothing is known
  double next_left = 0;  // of the whole as it is then, as a share, when that stage is free
};
// The stage that has a `scaling`, else the longest `train`. `gpus`: the numbers asked for; none: those of `scaling`, or
// 2, 4, 8 and 16 times as many.
Amdahl spread_stage(const spec::Workflow& workflow, const Timeline& timeline, const std::vector<int64_t>& gpus = {});

base::Json to_json(const Timeline& timeline);
base::Json to_json(const Amdahl& amdahl);
std::string to_text(const Timeline& timeline);  // a bar a stage
std::string to_text(const Amdahl& amdahl);

}  // namespace lockstep::workflow
