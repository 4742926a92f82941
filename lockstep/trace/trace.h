// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "lockstep/forecast/attention.h"
#include "lockstep/forecast/recording.h"
#include "lockstep/spec/job.h"

namespace lockstep::trace {

using forecast::Attention;

// What of a simulated GPU changes which operators the step calls. Everything else about a GPU (rates, workspaces,
// memory) is the forecast's business and needs no second trace.
struct Simulation {
  Attention attention = Attention::flash;  // the kernel that the GPU's generation takes for 16-bit attention
  int64_t ranks = 1;                       // data-parallel ranks; the reducer runs over a backend that does nothing
  int64_t rows = 0;                        // samples of this rank a step; 0: global_batch / ranks, rounded up
  int64_t evaluation_rows = 0;             // of an evaluation before the last step; 0: none
  int64_t steps = 3;                       // from process start; the first one makes what later ones find
  std::optional<spec::Phase> phase = {};   // the one whose step it is; none: the whole network is trained
  bool graph = true;                       // fused kernels of one rank are captured as a CUDA graph, as in a long run
  bool fills = false;                      // of an evaluation: the frozen blocks alone, which fill the phase's cache
};

// Executes the job's own step (step::Step) on a simulated CUDA device and records it. No GPU, no data, no weights in
// memory. With evaluation_rows a batch of that many is evaluated behind the last step but one, as training does it, and
// behind a captured step once more, beside which it needs its memory; a run puts whole weights together at its end
// anyway (training.zero 3), behind the last step. A phase on cached features is given them. Operators without a rule
// are named in the recording (unknown_operator.h). Call once or more; the process must not have opened real CUDA and
// never may afterwards. REQUIRES: model.classes is known; with evaluation_rows at least two steps.
forecast::Recording trace_step(const spec::Job& job, const Simulation& simulation = {});

// One evaluation pass (no gradients) over `rows` samples, likewise; of a phase on cached features the trained blocks
// alone, or with `fills` the others.
forecast::Recording trace_evaluation(const spec::Job& job, const Simulation& simulation = {});

}  // namespace lockstep::trace
