// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/recordings.h"

#include "lockstep/base/text.h"
#include "lockstep/forecast/family.h"

namespace lockstep::forecast {
namespace {

constexpr int64_t kAsAPass = -1;

// An evaluation of as many samples as a pass has grows with it; of another number it stays as it is.
Ask without_batch(Ask ask) {
  if (ask.evaluation_rows == ask.micro_batch) ask.evaluation_rows = kAsAPass;
  ask.micro_batch = 0;
  return ask;
}

std::string key_of(const Ask& ask, const MemoryRules& rules) {
  return base::text(ask.precision, "/", base::join(ask.recompute, ","), "/",
                    ask.attention ? name_of(*ask.attention) : "", "/", ask.reduced, "/", ask.micro_batch, "/",
                    ask.passes, "/", ask.zero, "/", ask.ranks, "/", ask.slices, "/", ask.evaluation_rows, "/",
                    rules.capacity, "/", rules.expandable_segments, "/", rules.cublas_workspace, "/", rules.context,
                    "/", rules.nccl, "/", rules.compute_capability);
}

}  // namespace

void Recordings::settle(Ask& ask) const {
  if (!attention_matters_) ask.attention.reset();
}

Recording Recordings::trace(const Ask& ask) {
  ++num_traced_;
  Recording recording = tracer_(ask);
  // Attention written out in products ("math") looks like none.
  if (recording.attention.empty() && ask.attention != Attention::math) attention_matters_ = false;
  return recording;
}

const Recording& Recordings::of(Ask ask) {
  settle(ask);
  Kept& traced = traced_[without_batch(ask)];
  const auto found = traced.find(ask.micro_batch);
  if (found != traced.end()) return *found->second;
  Kept& computed = computed_[without_batch(ask)];
  const auto known = computed.find(ask.micro_batch);
  if (known != computed.end()) return *known->second;
  if (traced.size() >= 2) {
    const Recording& first = *traced.begin()->second;
    const Recording& last = *traced.rbegin()->second;
    if (Family::corresponds(first, last)) {
      auto made = std::make_unique<Recording>(Family({first, last}).at(ask.micro_batch));
      return *(computed[ask.micro_batch] = std::move(made));
    }
  }
  auto made = std::make_unique<Recording>(trace(ask));
  settle(ask);  // the first trace tells whether attention matters
  return *(traced_[without_batch(ask)][ask.micro_batch] = std::move(made));
}

const MemoryForecast& Recordings::memory(Ask ask, MemoryRules rules) {
  const Recording& recording = of(ask);
  settle(ask);
  const int64_t capacity = rules.capacity;
  rules.capacity = 0;
  const auto replay = [&]() -> const MemoryForecast& {
    const std::string key = key_of(ask, rules);
    const auto found = replays_.find(key);
    return found != replays_.end() ? found->second : replays_[key] = forecast_memory(recording, rules);
  };
  const MemoryForecast& free = replay();
  // Giving cached memory back cannot help where what is alive does not fit.
  const int64_t least = free.peak_allocated + free.context + free.nccl;
  if (capacity == 0 || free.total <= capacity || least > capacity) return free;
  rules.capacity = capacity;
  return replay();
}

}  // namespace lockstep::forecast
