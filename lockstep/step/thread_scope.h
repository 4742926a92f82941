// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::step {

// For its lifetime operators called by this thread compute with `threads` threads; 0: with as many as before.
class ThreadScope {
 public:
  explicit ThreadScope(int64_t threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_;
};

}  // namespace lockstep::step
