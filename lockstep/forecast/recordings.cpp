// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/recordings.h"

#include <algorithm>

#include "lockstep/forecast/family.h"
#include "lockstep/forecast/workspace.h"

namespace lockstep::forecast {
namespace {

constexpr int64_t kAsAPass = -1;

// An evaluation of as many samples as a pass has grows with it; of another number it stays as it is.
TraceKey without_batch(TraceKey trace_key) {
  if (trace_key.evaluation_rows == trace_key.micro_batch) trace_key.evaluation_rows = kAsAPass;
  trace_key.micro_batch = 0;
  return trace_key;
}

// The same step of so many samples.
TraceKey at_samples(TraceKey trace_key, int64_t samples) {
  const bool as_a_pass = trace_key.evaluation_rows == trace_key.micro_batch;
  trace_key.passes = samples > trace_key.micro_batch ? trace_key.passes : 1;
  trace_key.micro_batch = std::min(trace_key.micro_batch, samples);
  if (as_a_pass) trace_key.evaluation_rows = trace_key.micro_batch;  // one of its size is traced with it
  return trace_key;
}

bool depends_on_warps(const Recording& recording) {
  const MemoryRules one_warp{.warps = 1};
  return std::any_of(recording.operators.begin(), recording.operators.end(), [&](const Operator& call) {
    return call.kind == OperatorClass::reduction && call_workspace(call, one_warp, recording.layout) > 0;
  });
}

}  // namespace

void Recordings::settle(TraceKey& trace_key) const {
  const auto known = attention_matters_.find({trace_key.phase, trace_key.fills});
  if (known != attention_matters_.end() && !known->second) trace_key.attention.reset();
}

Recording Recordings::trace(const TraceKey& trace_key) {
  ++num_traced_;
  Recording recording = tracer_(trace_key);
  // Attention written out in products ("math") looks like none.
  if (recording.attention.empty() && trace_key.attention != Attention::math) {
    attention_matters_[{trace_key.phase, trace_key.fills}] = false;
  }
  return recording;
}

const Recording& Recordings::of(TraceKey trace_key) {
  settle(trace_key);
  Kept& traced = traced_[without_batch(trace_key)];
  const auto found = traced.find(trace_key.micro_batch);
  if (found != traced.end()) return *found->second;
  Kept& computed = computed_[without_batch(trace_key)];
  const auto known = computed.find(trace_key.micro_batch);
  if (known != computed.end()) return *known->second;
  if (traced.size() >= 2) {
    const Recording& first = *traced.begin()->second;
    const Recording& last = *traced.rbegin()->second;
    if (!computed.empty() || Family::corresponds(first, last)) {  // compared once: of such two nothing more is traced
      auto made = std::make_unique<Recording>(Family::between(first, last, trace_key.micro_batch));
      return *(computed[trace_key.micro_batch] = std::move(made));
    }
  }
  auto made = std::make_unique<Recording>(trace(trace_key));
  settle(trace_key);  // the first trace tells whether attention matters
  return *(traced_[without_batch(trace_key)][trace_key.micro_batch] = std::move(made));
}

const MemoryForecast& Recordings::memory(TraceKey trace_key, MemoryRules rules, int64_t odd) {
  const Recording& recording = of(trace_key);
  if (!recording.captured) odd = 0;
  const Recording* beside = odd > 0 ? &of(at_samples(trace_key, odd)) : nullptr;
  settle(trace_key);
  const int64_t capacity = rules.capacity;
  rules.capacity = 0;
  const int64_t warps = rules.warps > 0 && depends_on_warps(recording) ? rules.warps : 0;
  const auto replay = [&]() -> const MemoryForecast& {
    const ReplayKey key{
        trace_key, rules.capacity, rules.expandable_segments, rules.cublas_workspace, rules.context, rules.nccl, warps,
        odd};
    const auto found = replays_.find(key);
    return found != replays_.end() ? found->second : replays_[key] = forecast_memory(recording, rules, beside);
  };
  const MemoryForecast& free = replay();
  // Giving cached memory back cannot help where what is alive does not fit.
  const int64_t least = free.peak_allocated + free.context + free.nccl;
  if (capacity == 0 || free.total <= capacity || least > capacity) return free;
  rules.capacity = capacity;
  return replay();
}

}  // namespace lockstep::forecast
