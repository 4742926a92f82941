// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/spec/job.h"
#include "lockstep/spec/plan.h"

namespace lockstep::training {

// Where a run runs. It decides which option of a plan the run is held to.
struct Standing {
  std::string device = "cpu";  // or "cuda"
  std::string name;            // of the GPU or the processor, as the driver or the kernel spells it
  std::string id;              // its row of the catalogue; empty: none fits
  int64_t ranks = 1;
};
Standing standing_here(const std::string& device, int64_t index, int64_t ranks);

// What a plan promises of one phase of the job.
struct PhasePromise {
  std::string name;
  std::optional<double> step_seconds, step_low, step_high;
  double features_seconds = 0;  // until its cache is filled; 0: it has none
  double memory_bytes = 0;      // as Promise::memory_bytes, which is the most of all phases
};

// What one option of a plan (docs/formats/plan.md) promises. Absent: the plan does not say.
struct Promise {
  int64_t option = 0;  // its index in the plan
  std::string title;
  std::optional<double> step_seconds, step_low, step_high;  // with phases the mean over their steps
  std::vector<PhasePromise> phases = {};                    // empty: the job has none
  std::optional<double> samples_per_second;
  std::optional<double> memory_bytes;  // cuda: reserved by libtorch's allocator; cpu: of the whole process
  double memory_tolerance = 0.05;      // what that may be off by, as a share
  std::optional<double> epoch_seconds, save_seconds;
  std::optional<double> start_up_seconds, start_up_low, start_up_high;  // of one job
  std::optional<double> total_seconds;                                  // of all jobs, with their start-ups
  int64_t jobs = 1;
  std::map<std::string, double> by_class;  // seconds of a step by operator class
};

// The option of `plan` that this run is; `file` names the plan in errors. User error: the plan of a recording; a plan
// of another job (the first key that differs, with both values); no option for this device and number of ranks (those
// that there are).
Promise find_promise(const spec::Plan& plan, const std::string& file, const spec::Job& job, const Standing& standing);

}  // namespace lockstep::training
