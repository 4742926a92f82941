// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/comm/group.h"
#include "lockstep/run/disk.h"
#include "lockstep/run/pulse.h"
#include "lockstep/run/threads.h"
#include "lockstep/spec/job.h"
#include "lockstep/task/task.h"
#include "lockstep/training/ledger.h"

namespace lockstep::training {

struct TrainOptions {
  base::Path run;  // the run folder; a checkpoint of the same job in it is gone on from
  at::Device device = at::kCPU;
  // Asked before each step, on each rank: why to stop after it; empty: go on.
  std::function<std::string()> stop = [] { return std::string(); };
  std::optional<double> seconds_left = {};             // until somebody ends this process
  double seconds_passed = 0;                           // before this process, of the time that the run was given
  run::ThreadChoice threads = {.threads = 0};          // to compute with; 0: the share of the cores
  bool restarted = false;                              // by a supervisor, within the time of an earlier start
  std::optional<base::Path> plan = {};                 // the plan that the run is held to
  std::string node = {};                               // the name of this rank's machine; empty: as it says itself
  bool accept_changes = false;                         // of keys that make another run of it
  bool profile = false;                                // rank 0 writes RUN/profile.json (timeline.h)
  bool history = false;                                // every rank writes down which samples each of its steps took
  std::shared_ptr<run::Disk> disk = run::real_disk();  // what checkpoints are written to
  Logger logger = {};                                  // rank 0 only
  // What this rank is doing, told as it goes on; for a supervisor.
  std::shared_ptr<run::Activity> activity = std::make_shared<run::Activity>();
};

struct TrainResult {
  bool finished = false;    // otherwise stopped in order, everything saved
  std::string stop_reason;  // when not finished
  int64_t step = 0;
  int64_t total_steps = 0;  // 0: stopped before the data were known
  int64_t resumed_at = 0;   // 0: from the start
  double seconds = 0;       // of training, all sessions
  int64_t bad_samples = 0;
  int64_t saves = 0;           // checkpoints of this session
  double save_seconds = 0;     // of the last one, until it was durable
  double stall_seconds = 0;    // how long the steps of this session waited for saves
  double stall_share = 0;      // of this session
  int64_t rewinds = 0;         // of this session
  std::string weights_sha256;  // of RUN/weights.safetensors, when finished
  std::string state_sha256;    // of weights, statistics, optimizer, moving average and loader position at the end
  std::optional<task::ScoreSummary> evaluation = {};  // the last one

  base::Json to_json() const;
};

// Trains what the job says, on all ranks of the group, and keeps the run folder. The same job on the same ranks and
// threads gives the same bits, stopped and resumed or not.
TrainResult train(const spec::Job& job, const TrainOptions& options, comm::Group& group);

}  // namespace lockstep::training
