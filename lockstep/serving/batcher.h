// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace lockstep::serving {

// What a request brings to the network: some rows of a batch.
class Work {
 public:
  virtual ~Work() = default;
  virtual int64_t rows() const { return 1; }
  using Kind = std::pair<const void*, int>;
  virtual Kind kind() const = 0;                     // only work of one kind shares a batch
  virtual void prepare() = 0;                        // on one of several threads: from bytes to values
  virtual void finish() = 0;                         // it was run, and does not count any more: the answer
  virtual void fail(const std::exception& why) = 0;  // it will not be run
  virtual bool is_late() const { return false; }     // nobody waits for it any more
};

struct BatcherOptions {
  int64_t max_rows = 16;                   // of a batch
  int64_t max_works = 64;                  // accepted and not finished
  std::chrono::microseconds budget{2000};  // the longest that work which is ready waits for others on their way
  int64_t threads = 1;                     // that prepare
  int64_t runners = 1;                     // batches run at once, each on a thread of its own
};

struct BatcherCounts {
  int64_t under_way = 0;  // works accepted and not finished
  int64_t refused = 0;    // works, so far
  int64_t batches = 0;
  int64_t rows = 0;  // of all batches
  double run_seconds = 0;
};

// Puts the work of many requests together. The network takes whatever is ready as soon as it is free; while other work
// is being prepared it waits for that, but not beyond the budget: so a lone client waits for nobody, and many clients
// fill batches. Several runners share out what is ready and wait for nothing. What does not fit into the queue is
// refused at once: a queue that grows only makes everybody late.
class Batcher {
 public:
  using Run = std::function<void(const std::vector<std::shared_ptr<Work>>& batch)>;  // on a thread of a runner

  // Work of a batch for which `run` throws fails with what it threw.
  Batcher(const BatcherOptions& options, Run run);
  ~Batcher();  // what is queued is finished before
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  bool submit(std::shared_ptr<Work> work);  // false: full
  BatcherCounts counts() const;
  const BatcherOptions& options() const;

 private:
  class Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace lockstep::serving
