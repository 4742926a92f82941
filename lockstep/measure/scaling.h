// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/forecast/many_ranks.h"
#include "lockstep/run/journal.h"
#include "lockstep/spec/choice.h"
#include "lockstep/spec/job.h"
#include "lockstep/task/task.h"

namespace lockstep::measure {

//   strong   the job as it is, on more ranks: a smaller share of the batch each
//   weak     every rank keeps the share that one rank has: the batch is multiplied, the steps are divided
LOCKSTEP_CHOICE(ScalingMode, strong, weak)

struct ScalingBench {
  spec::Job job;
  std::string job_file;
  std::vector<std::string> set;  // overrides of it, for every point
  std::vector<int64_t> ranks;    // ascending
  ScalingMode mode = ScalingMode::strong;
  int64_t repeats = 2;
  int64_t threads = 1;  // of each rank, the same for every point: a rank is the thing that is counted
  std::string device = "cpu";
  base::Path out;           // run folders and points
  double seconds = 86'400;  // that one run may take
  std::function<void(std::string_view)> say = [](std::string_view) {};
};

// One training run of a point. Rates leave the first fifth of the steps out: they warm up.
struct ScalingRun {
  double hours = 0;  // the whole run
  int64_t steps = 0;
  double rate = 0;                              // samples per second
  double step_seconds = 0;                      // mean
  double exposed_seconds = 0;                   // of it: waited for other ranks and the network
  std::optional<task::Headline> headline = {};  // on the validation set, at the end

  bool operator==(const ScalingRun&) const = default;
};

struct ScalingPoint {
  int64_t ranks = 1;
  int64_t batch = 0;          // global
  double gradient_bytes = 0;  // that a step sums over the ranks in one all-reduce; 0: it does not
  double alone_seconds = 0;   // of the same all-reduce with nothing to hide behind; 0: not measured
  std::vector<ScalingRun> runs;
  int64_t threads = 0;  // of a rank; 0: not stated (an earlier version wrote it, or GPUs compute)
  std::string machine = {};

  double rate() const;  // medians over the runs
  double step_seconds() const;
  double exposed_seconds() const;
  std::optional<double> hidden_share() const;  // nothing for one rank, or without `alone_seconds`
  bool operator==(const ScalingPoint&) const = default;
};

struct Efficiency {
  double value = 1, low = 1, high = 1;  // median, smallest and largest over the runs
};
// Against the first point, whose ranks count as 1.
Efficiency efficiency_of(const ScalingPoint& point, const ScalingPoint& base);

// Bytes that a step of this job sums over the ranks in one all-reduce: the whole gradient, in the type in which it
// travels. 0 where a step does something else: training.zero 2 and 3, virtual ranks, phases with frozen blocks.
double summed_bytes(const spec::Training& training, double parameters);

// Samples per second that the collective model foretells from the first point's step and the link. Nothing without a
// link, for the first point itself, or where a step has no all-reduce of the whole gradient.
std::optional<double> planned_rate(const ScalingPoint& point, const ScalingPoint& base,
                                   const std::optional<forecast::Network>& link);

// The overrides that make the job into that point: batch, steps, threads.
std::vector<std::string> point_overrides(const ScalingBench& bench, int64_t ranks);

// A run from its journal and what `train --json` wrote.
ScalingRun read_scaling_run(const run::History& history, const base::Json& result);

// Trains the point's runs as children of this process, writes point-MODE-RANKS.json into `out`.
ScalingPoint run_scaling_point(const ScalingBench& bench, int64_t ranks);
// Those written so far, ascending. User error when there is none, or when their ranks had different numbers of threads.
std::vector<ScalingPoint> collect_scaling_points(const base::Path& out, ScalingMode mode);
// The link that the points were measured beside, kept for who collects them.
void keep_link(const base::Path& out, const forecast::Network& link);
std::optional<forecast::Network> kept_link(const base::Path& out);
base::Path point_file(const base::Path& out, ScalingMode mode, int64_t ranks);

// The link between two ranks on this machine, from two all-reduces alone; nothing when it cannot be measured: GPUs, no
// gradient, a machine so busy that few bytes take longer than many.
std::optional<forecast::Network> measure_link(const ScalingBench& bench, double gradient_bytes);

base::Json to_json(const ScalingPoint& point);
ScalingPoint scaling_point_of(const base::Json& document);

}  // namespace lockstep::measure
