// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

// Which step of a run becomes a CUDA graph (step::StepGraph): asked by the run, and by `plan` before there is one.
namespace lockstep::run {

// libtorch's own kernels settle within so many steps of one shape: workspaces, algorithm choices.
inline constexpr int64_t kEagerSteps = 11;

// Counts the batches of each shape until one of them is captured.
class CaptureCount {
 public:
  // Counts this batch. Whether its step is the one: behind kEagerSteps of its shape, whatever came between them. A
  // batch of fewer samples than one before it is the odd last one of an epoch, and is never captured.
  bool is_due(const std::string& shape, int64_t samples);

 private:
  std::map<std::string, int64_t> seen_;
  int64_t full_ = 0;  // samples of the largest batch so far
};

// Of the steps [begin, end) of a run those with a full batch; the last one of an epoch of `samples` may be smaller.
// `samples` 0: not known, and every batch is full.
int64_t full_batches(int64_t begin, int64_t end, int64_t samples, int64_t global_batch);

// Whether those steps, by themselves, come to one that is captured.
bool reaches_capture(int64_t begin, int64_t end, int64_t samples, int64_t global_batch);

// Samples of the smaller batch with which an epoch ends behind the captured one of those steps: it runs beside the
// graph, in memory of its own. 0: there is none. `begin` begins an epoch.
int64_t odd_batch(int64_t begin, int64_t end, int64_t samples, int64_t global_batch);

}  // namespace lockstep::run
