// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/baselines.h"

#include <algorithm>
#include <unordered_map>

namespace lockstep::forecast {
namespace {

constexpr int64_t kLiveUnit = 512;
constexpr double kResnet50Parameters = 25'557'032;
constexpr double kDeepsimResnet50 = 7.5e9;  // bytes at batch 32
constexpr double kDeepsimBatch = 32;

int64_t element_bytes(NumberType type) {
  switch (type) {
    case NumberType::bf16:
    case NumberType::fp16:
      return 2;
    case NumberType::fp64:
    case NumberType::integer:
      return 8;
    default:
      return 4;
  }
}

}  // namespace

int64_t weights_only(const Recording& recording) {
  return recording.parameter_bytes;
}

int64_t live_bytes_peak(const Recording& recording) {
  std::unordered_map<int64_t, int64_t> alive;
  int64_t now = 0;
  int64_t peak = 0;
  int64_t step = 0;
  for (const Event& event : recording.events) {
    if (event.kind == EventKind::birth) {
      const int64_t bytes = (event.bytes + kLiveUnit - 1) / kLiveUnit * kLiveUnit;
      alive[event.id] = bytes;
      now += bytes;
    } else if (event.kind == EventKind::death) {
      now -= alive[event.id];
      alive.erase(event.id);
    } else if (event.kind == EventKind::step_begin && ++step == 2) {
      peak = now;
    }
    peak = std::max(peak, now);
  }
  return peak;
}

double nodes_per_sample(const Recording& recording) {
  double nodes = 0;
  int64_t pending = 0;  // bytes born since the last operator ran: they are its outputs
  bool in_step = false;
  for (const Event& event : recording.events) {
    in_step = in_step || event.kind == EventKind::step_begin;
    if (!in_step) continue;
    if (event.kind == EventKind::birth && event.memory == MemoryClass::activations) pending += event.bytes;
    if (event.kind == EventKind::step_end) break;
    if (event.kind != EventKind::run) continue;
    const Operator& call = recording.operators[static_cast<size_t>(event.id)];
    if (call.phase == Phase::backward) break;
    if (call.phase == Phase::forward)
      nodes += static_cast<double>(pending) / static_cast<double>(element_bytes(call.type));
    pending = 0;
  }
  return recording.micro_batch > 0 ? nodes / static_cast<double>(recording.micro_batch) : 0;
}

double deepsim_heuristic(const Recording& recording, int64_t mask_elements) {
  return (static_cast<double>(recording.parameters) + nodes_per_sample(recording)) * 4 *
         static_cast<double>(recording.micro_batch) * static_cast<double>(mask_elements);
}

double deepsim_by_parameters(const Recording& recording) {
  return kDeepsimResnet50 * static_cast<double>(recording.parameters) / kResnet50Parameters *
         static_cast<double>(recording.micro_batch) / kDeepsimBatch;
}

}  // namespace lockstep::forecast
