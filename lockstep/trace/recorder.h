// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "lockstep/forecast/recording.h"

namespace lockstep::trace {

// Writes a forecast::Recording while the step runs on the simulated device. The allocator tells of storages, the
// kernels of operators, the network of its blocks. The thread that makes it is the main one; any other is autograd's.
// Safe to call from both.
class Recorder {
 public:
  Recorder();

  // Storages. A birth of no bytes is none: the GPU's allocator gives no block for it; its id is -1.
  int64_t birth(int64_t bytes);
  void death(int64_t id);
  void classify(int64_t id, forecast::MemoryClass memory);          // what it turned out to be for
  void classify_from(int64_t first, forecast::MemoryClass memory);  // every storage born since `first`
  int64_t next_storage() const;

  // Operators. `phase` and `block` are filled in here.
  void run(forecast::Operator call);
  void estimated(const std::string& name);  // no rule describes it
  // Block `index` of the network runs on this thread from now on; -1: none.
  void enter_block(int64_t index);

  // Gives its id. The reducer hands its buckets over on autograd's thread, all of them to be summed everywhere, and
  // waits for all of them before backward returns: their waits come before whatever the main thread does next, unless
  // wait() came first. Others say wait().
  int64_t collective(forecast::CollectiveKind kind, int64_t bytes);
  void wait(int64_t collective);

  void step_begin();
  void step_end();
  void evaluation_begin();

  // Nothing is recorded any more. What was, without the description of the job.
  forecast::Recording finish();

 private:
  struct Mark {  // nodes of the graph from this sequence number on belong to the block
    uint64_t sequence;
    int64_t block;
  };
  using Marks = std::vector<Mark>;  // of one thread and one step, ascending: each thread counts for itself
  struct Hash {
    size_t operator()(const forecast::Operator& call) const;
  };
  bool on_main() const { return std::this_thread::get_id() == main_; }
  void add(forecast::Event event);
  forecast::Phase phase_of(const forecast::Operator& call);
  int64_t block_now();

  mutable std::mutex mutex_;
  std::thread::id main_;
  forecast::Recording recording_;
  std::unordered_map<forecast::Operator, int64_t, Hash> operators_;
  std::vector<size_t> births_;  // index of each storage's birth among the events
  uint64_t main_number_;        // as autograd numbers threads
  Marks marks_;
  Marks autograd_marks_;  // blocks that run again in backward
  forecast::Phase phase_ = forecast::Phase::setup;
  int64_t block_ = -1;           // on the main thread
  int64_t autograd_block_ = -1;  // entered again on autograd's thread: recomputation
  int64_t last_backward_ = -1;   // gradients are added up between nodes: with the block seen last
  int64_t num_collectives_ = 0;
  std::vector<int64_t> handed_over_;  // by the reducer, not yet waited for
  bool finished_ = false;
};

}  // namespace lockstep::trace
