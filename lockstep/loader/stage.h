// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lockstep/base/file.h"
#include "lockstep/loader/collection.h"

namespace lockstep::loader {

// What it would take to copy a collection's shards to this node. Nothing is written to find out.
struct StagePlan {
  base::Path folder;        // of the copies, named by the shards' checksums; empty: no copies, `why_not` says it
  bool in_memory = false;   // the file system is main memory: the copies are removed at the end
  int64_t bytes = 0;        // of all shards
  int64_t bytes_there = 0;  // of these, copied by an earlier run
  int64_t free_bytes = 0;   // where the copies go
  double read_rate = 0;     // bytes per second of the source, measured; 0: nothing to read
  std::string why_not = {};

  bool fits() const;
  double seconds() const;       // at that rate
  std::string to_text() const;  // one sentence: how much, how long, whether it fits
};

// Of all shards. REQUIRES: a collection of shards.
int64_t shard_bytes(const Collection& collection);

// `where` is data.stage: a folder on this node, "ram" (/dev/shm) or "auto" (the job's scratch folder, $PBS_JOBFS or
// else $TMPDIR, if it is local and the shards are not). Reads up to 64 MiB of the first shard to time it. User error: a
// named folder that is not there. REQUIRES: a collection of shards.
StagePlan plan_stage(const Collection& collection, const std::string& where);

// Copies shards to this node in the background, once however many ranks of the node ask for it: whoever holds the lock
// copies, the others use what is finished and take over should the holder die. A copy has its final name only when its
// checksum, read back from the copy, is right; one left by an earlier run is checked again before it is used. Nobody
// waits for copies: a shard is read from its source until its copy is there. Errors are reported by progress() and end
// nothing.
class Staging {
 public:
  struct Options {
    double bytes_per_second = 0;  // at most; 0: as fast as it goes
  };
  struct Progress {
    int64_t shards = 0;  // whose copies are in use
    int64_t bytes = 0;
    std::string trouble = {};  // why there will be no more
    bool operator==(const Progress&) const = default;
  };

  // REQUIRES: plan.fits()
  Staging(const Collection& collection, const StagePlan& plan, const Options& options);
  Staging(const Collection& collection, const StagePlan& plan) : Staging(collection, plan, Options{}) {}
  // Stops. Copies in main memory are removed by the last process of the node that leaves, others stay for the next run.
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  int descriptor(int64_t shard) const;  // of the copy; -1 while there is none. Any thread.
  // The copy turned out to be damaged: the source serves from now on. True also for callers that come later with bytes
  // of the copy; false: there was no copy. Any thread.
  bool forget(int64_t shard);
  Progress progress() const;
  bool is_done() const;  // all there, or no more to come

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::loader
