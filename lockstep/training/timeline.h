// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lockstep/base/file.h"
#include "lockstep/step/gpu.h"

namespace lockstep::training {

// Some steps of a session as a trace file, which Perfetto (ui.perfetto.dev) and chrome://tracing open: what the session
// did (data, step, evaluation, save), the operators that it called, and on a GPU every kernel and copy with its own
// times (CUPTI). The session's parts are NVTX ranges too, in all steps, for NVIDIA's tools. Of one rank; not
// thread-safe.
class Timeline {
 public:
  static constexpr int64_t kFirst = 20;  // steps of the session before it: kernels chosen, CUDA graph captured
  static constexpr int64_t kSteps = 5;

  // `num_steps`: of the session; a shorter one is recorded from an earlier step on. Machine error when a GPU cannot be
  // watched.
  Timeline(base::Path file, at::Device device, int64_t num_steps);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  void before_step();
  bool is_complete() const { return watch_ && steps_ >= first_ + kSteps; }
  // Writes the file with the steps so far, once. True: now.
  bool write();
  const base::Path& file() const { return file_; }

  // Around what a part does; `timeline` may be null.
  class Range {
   public:
    Range(Timeline* timeline, const char* name);
    ~Range();
    Range(const Range&) = delete;
    Range& operator=(const Range&) = delete;

   private:
    Timeline* timeline_;
    const char* name_;
    int64_t start_;
  };

 private:
  struct Watch;
  base::Path file_;
  at::Device device_;
  int64_t first_;
  int64_t steps_ = 0;
  bool written_ = false;
  std::unique_ptr<Watch> watch_;  // while it records
};

}  // namespace lockstep::training
