// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/capture.h"

#include <algorithm>

#include "lockstep/run/order.h"

namespace lockstep::run {

bool CaptureCount::is_due(const std::string& shape, int64_t samples) {
  full_ = std::max(full_, samples);
  return ++seen_[shape] > kEagerSteps && samples == full_;
}

int64_t full_batches(int64_t begin, int64_t end, int64_t samples, int64_t global_batch) {
  if (samples <= global_batch || samples % global_batch == 0) return end - begin;  // all are alike
  const int64_t an_epoch = num_steps(samples, global_batch);
  const auto until = [&](int64_t step) { return step - step / an_epoch; };  // one of each epoch is smaller
  return until(end) - until(begin);
}

bool reaches_capture(int64_t begin, int64_t end, int64_t samples, int64_t global_batch) {
  return full_batches(begin, end, samples, global_batch) > kEagerSteps;
}

int64_t odd_batch(int64_t begin, int64_t end, int64_t samples, int64_t global_batch) {
  if (samples <= global_batch || samples % global_batch == 0) return 0;
  const int64_t an_epoch = num_steps(samples, global_batch);
  int64_t behind = begin;  // the captured step
  for (int64_t full = 0; full <= kEagerSteps; ++behind) full += (behind + 1) % an_epoch == 0 ? 0 : 1;
  return end / an_epoch * an_epoch > behind ? samples % global_batch : 0;
}

}  // namespace lockstep::run
