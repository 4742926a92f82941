// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/spec/choice.h"
#include "lockstep/spec/job.h"

namespace lockstep::forecast {

using spec::Layout;  // of images and convolution weights

// The recording: what one rank's training step does, in plain structs, without any tensor library. `trace` fills it
// from our own step on a simulated device, python/lockstep/record.py from a user's PyTorch step, the CUDA plug-in from
// a real GPU. Memory, time and everything that follows are computed from it alone.

// What a storage is for. `activations` is everything born in a pass that is none of the others.
LOCKSTEP_CHOICE(MemoryClass, weights, gradients, optimizer, averages, activations, workspaces, buckets, inputs, other)

// What an operator does, as far as its speed is concerned. `view` costs nothing on the device.
LOCKSTEP_CHOICE(OperatorClass, matmul, convolution, convolution_input_gradient, convolution_weight_gradient, attention,
                attention_gradient, batch_norm, batch_norm_gradient, layer_norm, layer_norm_gradient, elementwise,
                reduction, softmax, pooling, pooling_gradient, copy, indexing, random, optimizer, view, host)

// The type an operator computes in. tf32: fp32 tensors on the tensor cores.
LOCKSTEP_CHOICE(NumberType, fp32, tf32, bf16, fp16, fp64, integer)

LOCKSTEP_CHOICE(Phase, setup, forward, backward, update, evaluate)

struct Operator {
  std::string name = {};  // "aten::convolution"
  OperatorClass kind = OperatorClass::elementwise;
  NumberType type = NumberType::fp32;
  Phase phase = Phase::forward;
  double flops = 0;      // multiply and add count as two
  double bytes = 0;      // read and written, every tensor once
  int64_t launches = 1;  // kernels, as far as known; 0: none (view, host)
  int64_t block = -1;    // of the network; -1: none (loss, optimizer)
  // Shapes that decide the speed: convolution {batch, in, height, width, out, kernel_h, kernel_w, stride, groups},
  // matmul {batch, m, n, k}, attention {batch, heads, tokens_q, tokens_k, head_dim}; else the largest tensor's sizes.
  std::vector<int64_t> shape = {};

  bool operator==(const Operator&) const = default;
};

LOCKSTEP_CHOICE(CollectiveKind, all_reduce, all_gather, reduce_scatter, broadcast, all_to_all, send)

// A moment of the step, in program order.
//   birth       storage `id` of `bytes` (as asked for, not rounded) begins; `memory` says what for
//   death       storage `id` ends
//   run         operator `id` has its outputs and runs now; what it needs for the time of the call alone (cuDNN's
//               workspace) depends on the GPU and is added by the replay, here
//   collective  `bytes` are handed to the network; the result is waited for at the next `wait` of the same `id`
//   wait        the compute stream waits for collective `id`
//   step_begin, step_end   one optimizer step (all its micro-batches)
LOCKSTEP_CHOICE(EventKind, birth, death, run, collective, wait, step_begin, step_end)

struct Event {
  EventKind kind = EventKind::run;
  int64_t id = 0;     // of the storage, the operator (index into Recording::operators), the collective
  int64_t bytes = 0;  // birth, collective
  MemoryClass memory = MemoryClass::other;
  CollectiveKind collective = CollectiveKind::all_reduce;
  int8_t thread = 0;  // 0: the main thread, 1: autograd's; each has its own cuBLAS workspace

  bool operator==(const Event&) const = default;
};

struct Recording {
  // What was recorded.
  std::string source;     // "lockstep trace", "python", ...
  std::string title;      // "resnet50"
  std::string precision;  // as in the job
  std::string optimizer;
  std::string attention;  // flash, cudnn, efficient: which kernel the simulated GPU takes; empty: no attention
  Layout layout = Layout::channels_last;
  int64_t micro_batch = 0;   // samples of one pass of this rank
  int64_t accumulation = 1;  // passes of one step
  int64_t ranks = 1;         // that the collectives are among
  int64_t image_size = 0;    // of square images; 0: others, or none
  int64_t parameters = 0;    // count
  int64_t parameter_bytes = 0;
  int64_t checkpoint_bytes = 0;  // weights, optimizer state, averages: what one save writes
  // The last step is captured as a CUDA graph: the inputs are copied for it, everything else that it allocates lies in
  // a pool of its own and stays, and its operators are launched at once.
  bool captured = false;
  int64_t steps = 0;                // between step_begin and step_end, in `events`
  std::vector<std::string> blocks;  // names of the network's blocks
  // Names of operators that no rule describes: counted by the bytes of their tensors alone.
  std::vector<std::string> estimated = {};
  std::vector<Operator> operators;  // each distinct call once
  std::vector<Event> events;        // from process start: weights, then `steps` whole steps

  bool operator==(const Recording&) const = default;
};

// The recording as a file (docs/formats/recording.md, kind "step"): text, a checksum at its end. Reading refuses every
// damage with a user error that names the line: a cut or changed file, another version, a count that cannot be, a
// death before the birth, an operator that is not listed. Of an event only the members that its kind has are written.
std::string print_recording(const Recording& recording);
Recording parse_recording(std::string_view content, const std::string& source);
void write_recording(const base::Path& path, const Recording& recording);
Recording read_recording(const base::Path& path);

}  // namespace lockstep::forecast
