// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/forecast/recording.h"
#include "lockstep/step/gpu.h"

namespace lockstep::measure {

// One distinct call (same operator, class, type, phase, sizes, FLOPs and bytes) in a piece of work, with what it cost.
struct SeenOperator {
  forecast::Operator what;            // `launches`: pieces of work of one call on the GPU, as counted
  int64_t count = 0;                  // calls in one run of the work
  double seconds = 0;                 // of one call on the device: median over the repetitions
  double host_seconds = 0;            // of one call on the thread that makes it; GPUs only
  std::vector<int64_t> scratch = {};  // bytes that one call allocated and freed again, in order; GPUs only
  std::string kernel = {};            // the longest piece of work's own name; GPUs only

  bool both_gradients() const;  // of a convolution, in one entry: no time of either
};

// What a whole run of the work cost.
struct SeenWork {
  std::vector<SeenOperator> operators;
  double busy_seconds = 0;     // sum of all pieces of work on the device, one run
  double span_seconds = 0;     // from the first one's start to the last one's end
  double unsplit_seconds = 0;  // of `busy_seconds`: gradients of convolutions whose two parts could not be told apart
  double stray_seconds = 0;    // of `busy_seconds`: launched by no operator
  int64_t launches = 0;        // pieces of work of one run
  double waiting_seconds = 0;  // host: spent in operators that wait for the GPU
  double host_seconds = 0;     // host: one run, without waiting_seconds
  std::string timer;           // "clock" (processor), "kernels" (CUPTI), "events": with the gaps before each launch
};

struct WatchOptions {
  const step::Gpu* gpu = nullptr;  // null: the processor
  int64_t repeats = 3;
  bool host = true;  // GPUs only: the host's side too, in further runs of the work
  bool scratch = true;
};

// Runs `work`, which must do the same each time, and watches the operators that autograd hands to the device (not the
// composites above them, nothing inside them; trace::is_composite). One watch at a time in a process.
SeenWork watch_operators(const std::function<void()>& work, const WatchOptions& options);

// A row for `bench fit`; without "seconds" when both_gradients().
base::Json operator_row(const SeenOperator& seen);

}  // namespace lockstep::measure
