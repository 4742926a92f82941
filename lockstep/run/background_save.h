// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>
#include <optional>
#include <thread>

#include "lockstep/run/checkpoint.h"

namespace lockstep::run {

// Writes checkpoints on a thread of its own while training goes on, one at a time. All calls from one thread. Nobody
// else may use the store between start() and the outcome.
class BackgroundSave {
 public:
  explicit BackgroundSave(CheckpointStore store) : store_(std::move(store)) {}
  ~BackgroundSave() = default;  // waits for a save under way, for parts of other nodes a few seconds at most
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  struct Outcome {
    int64_t step = 0;
    bool best = false;
    int64_t bytes = 0;                // of its parts, those of other nodes included
    base::Path folder = {};           // when it did not fail
    std::string untidy = {};          // see CheckpointStore::untidy
    std::exception_ptr failure = {};  // what CheckpointStore::save threw
    double seconds = 0;               // from start() until it was durable
    double processor_seconds = 0;     // of the thread
  };

  // REQUIRES: no save is under way. What save.parts look into must stay unchanged until the outcome.
  void start(Save save);
  // A part of a checkpoint that another node's process commits: see write_partition.
  void start_partition(int64_t step, std::string token, CheckpointPart part);
  // A save was started and its outcome is not yet taken.
  bool under_way() const { return thread_.joinable(); }
  // The outcome of a finished save, once. None while it is being written, and when there is no save.
  std::optional<Outcome> outcome();
  // The same, and waits for the save to finish.
  std::optional<Outcome> wait();

 private:
  void start_thread(std::function<base::Path(std::stop_token)> write);

  CheckpointStore store_;
  Outcome outcome_;
  std::atomic<bool> done_ = false;
  std::jthread thread_;  // last: it ends before what it uses
};

}  // namespace lockstep::run
