// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/json.h"

namespace lockstep::watching {

// A number of an event; `otherwise` where it has none, or is no object.
double number_in(const base::Json& event, std::string_view key, double otherwise = 0);

constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

// A `step` event as plain numbers: a run of a week has half a million of them. kAbsent: it does not say.
struct StepRecord {
  int64_t step = 0;   // the last one that it covers
  int64_t steps = 1;  // how many
  double time = 0;    // Unix seconds
  double epoch = kAbsent;
  double loss = kAbsent, figure = kAbsent;  // figure: the task's own, besides the loss
  double lr = kAbsent, gradient_norm = kAbsent;
  double samples = 0;
  double seconds = 0, data = 0, compute = 0, communication = 0, save = 0;
  double memory = kAbsent;  // bytes
  double watts = kAbsent;
  double joules = kAbsent;  // since the record before
};

// Seconds, by what they were spent on.
struct TimeSplit {
  double data = 0, compute = 0, communication = 0, save = 0;  // of the steps; data: waiting for batches
  double evaluation = 0;
  double features = 0;
  double other = 0;  // of the steps, what no part accounts for
  double total() const { return data + compute + communication + save + evaluation + features + other; }
};

// What a run's journal says so far (docs/formats/journal.md), taken in an event at a time, as they are read. Events
// that a later resume or rewind makes void are gone from it; the sessions keep all.
class RunLog {
 public:
  void add(const base::Json& event);

  base::Json start;               // the latest `start` or `resume`; null: none yet
  base::Json end;                 // null: it has not ended
  base::Json stop;                // of the present session; null: none
  base::Json promise;             // the latest; null: none
  base::Json bottleneck;          // the latest `loader_bottleneck` of the present session; null: none
  base::Json pace;                // the latest `rank_times` of the present session; null: none
  std::vector<StepRecord> steps;  // that count
  std::vector<base::Json> epochs, evaluations, saves, bad_samples;
  std::vector<base::Json> sessions;   // "began", "ended", "from_step", "to_step", "host", "outcome", ...
  std::vector<std::string> lines;     // what training said, the last 200
  std::vector<std::string> warnings;  // of the present session, in words
  int64_t num_warnings = 0;           // those that are left out among them
  int64_t num_nonfinite = 0;
  double features_seconds = 0;
  double last_time = 0;   // of the newest event
  int64_t num_voids = 0;  // grows whenever events that were told became void

  int64_t step() const { return steps.empty() ? 0 : steps.back().step; }
  int64_t total_steps() const;  // 0: not known
  std::string figure_name() const;
  // The first record of the present session that counts as warm: the first steps choose kernels and fill queues.
  size_t first_warm() const;
  TimeSplit split(size_t from_record = 0) const;

 private:
  void begin_session(const base::Json& event, bool resumes);
  void void_beyond(int64_t step);
  void warn(std::string words);
  void add_record(const base::Json& event);
  void add_to_session(const base::Json& event, const std::string& kind);

  double session_began_ = 0;
};

// At most `most` points of the curves, as pages draw them: means of neighbouring records, weighted by their steps.
base::Json thin_steps(const RunLog& log, size_t most, size_t from_record = 0);
base::Json to_json(const TimeSplit& split);

// Of the whole run so far: samples a second of the steps; kAbsent: none was taken.
double mean_rate(const RunLog& log);
// What the GPU of rank 0 has drawn over the steps that count, evaluations between them included; kAbsent: unknown.
double total_joules(const RunLog& log);

}  // namespace lockstep::watching
