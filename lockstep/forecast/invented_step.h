// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

#include "lockstep/forecast/recordings.h"

namespace lockstep::forecast {

// A step for tests that can be worked out by hand: two blocks, `early` that keeps 40 MB a sample (10 MB recomputed) and
// `late` that keeps 20 MB, weights of 100 MB; a sample costs each block 1e10 operations forward.
inline Recording invented_step(const TraceKey& trace_key) {
  constexpr int64_t kMega = 1'000'000;
  Recording made;
  made.source = "invented";
  made.title = "invented";
  made.precision = trace_key.precision;
  made.micro_batch = trace_key.micro_batch;
  made.accumulation = trace_key.passes;
  made.ranks = trace_key.reduced ? 2 : 1;
  made.parameters = 25 * kMega;
  made.parameter_bytes = 100 * kMega;
  made.checkpoint_bytes = 200 * kMega;
  made.steps = 2;
  made.blocks = {"early", "late"};
  const auto samples = static_cast<double>(trace_key.micro_batch);
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    for (const int64_t block : phase == Phase::forward ? std::array{0, 1} : std::array{1, 0}) {
      made.operators.push_back({.name = "aten::convolution",
                                .kind = OperatorClass::convolution,
                                .phase = phase,
                                .flops = samples * 1e10,
                                .bytes = samples * 1e6,
                                .block = block,
                                .shape = {trace_key.micro_batch, 64, 56, 56, 64, 3, 3, 1, 1}});
    }
  }
  const auto recomputed = [&](const std::string& block) {
    return std::any_of(trace_key.recompute.begin(), trace_key.recompute.end(),
                       [&](const std::string& name) { return name == block || name == "all"; });
  };
  const int64_t kept[] = {(recomputed("early") ? 10 : 40) * kMega, (recomputed("late") ? 10 : 20) * kMega};
  int64_t id = 0;
  made.events.push_back({.kind = EventKind::birth, .id = id++, .bytes = 100 * kMega, .memory = MemoryClass::weights});
  for (int64_t step = 0; step < made.steps; ++step) {
    made.events.push_back({.kind = EventKind::step_begin});
    for (int64_t pass = 0; pass < trace_key.passes; ++pass) {
      const int64_t first = id;
      for (int64_t block = 0; block < 2; ++block) {
        made.events.push_back({.kind = EventKind::birth,
                               .id = id++,
                               .bytes = trace_key.micro_batch * kept[block],
                               .memory = MemoryClass::activations});
        made.events.push_back({.kind = EventKind::run, .id = block});
      }
      for (int64_t block = 1; block >= 0; --block) {
        made.events.push_back({.kind = EventKind::run, .id = 3 - block});
        made.events.push_back({.kind = EventKind::death, .id = first + block});
      }
    }
    made.events.push_back({.kind = EventKind::step_end});
  }
  return made;
}

}  // namespace lockstep::forecast
