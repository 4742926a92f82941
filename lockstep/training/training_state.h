// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "lockstep/base/json.h"
#include "lockstep/task/task.h"
#include "lockstep/training/spike.h"

namespace lockstep::training {

// Seconds of training over all sessions of a run: those of earlier ones, and of this one since its start.
struct TrainedSeconds {
  double before = 0;
  double started = 0;  // of this session, on the steady clock

  double total() const;
  bool operator==(const TrainedSeconds&) const = default;
};

// What validation says of the run.
struct Scores {
  std::optional<double> best;              // the headline of the best checkpoint that was saved
  std::optional<task::ScoreSummary> last;  // evaluation

  bool operator==(const Scores&) const = default;
};

// How long validation has got no better in the last phase (training.early_stop).
struct Patience {
  std::optional<double> best;  // the headline that the next one must be better than
  int64_t without = 0;         // evaluations in a row since then

  void add(const task::Headline& headline, bool sound, double min_delta);
  bool operator==(const Patience&) const = default;
};

// Where a run stands, besides its tensors: what state.json of a checkpoint keeps. Alike on every rank, but for the
// seconds. One list in training_state.cpp names every member with its key and with what a rewind does to it; saving,
// resuming and rewinding all go by that list, and a member that is missing there does not compile.
struct TrainingState {
  int64_t step = 0;
  TrainedSeconds seconds = {};
  double step_seconds = 0;  // of one step, the slowest of late
  double save_seconds = 1;  // of the last save, until it was durable; a guess before the first
  double evaluate_seconds = 0;
  int64_t evaluated = 0;     // the last step behind which it was evaluated
  int64_t data_shift = 0;    // batches that rewinds left out: step s takes the data of s + data_shift
  int64_t rewinds = 0;       // in a row, without getting beyond rewound_from
  int64_t rewound_from = 0;  // the furthest step so far that a rewind gave up
  int64_t rewound_to = 0;
  int64_t nonfinite = 0;  // steps in a row
  SpikeDetector spikes{0};
  std::set<std::string> bad_files = {};  // skipped so far, of all ranks and sessions
  Scores scores = {};
  Patience patience = {};
  int64_t threads = 0;  // that each of `ranks` computes with: they decide the bits
  int64_t ranks = 0;

  void write(base::Json& saved) const;
  // From what was saved, into a fresh state. A key that an earlier version did not write leaves its member fresh.
  void resume(const base::Json& saved);
  // Back to what was saved, but for what outlives a rewind: times, what rewinds have done, and bad files.
  void rewind(const base::Json& saved);

  bool operator==(const TrainingState&) const = default;
};

}  // namespace lockstep::training
