// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/recorded.h"

#include <algorithm>

namespace lockstep::planning {

using forecast::Event;
using forecast::EventKind;
using forecast::Recording;

Recording recorded_step(const Recording& recording, const forecast::TraceKey& trace_key) {
  Recording made = recording;
  const bool talks = std::any_of(recording.events.begin(), recording.events.end(),
                                 [](const Event& event) { return event.kind == EventKind::collective; });
  if (!trace_key.reduced || talks) return made;
  made.ranks = 2;
  made.events.clear();
  bool reduced = true;  // outside of steps there is nothing to reduce
  int64_t id = 0;
  const auto reduce = [&] {
    made.events.push_back({.kind = EventKind::collective, .id = id, .bytes = recording.parameter_bytes});
    made.events.push_back({.kind = EventKind::wait, .id = id++});
    reduced = true;
  };
  for (const auto& event : recording.events) {
    const bool updates = event.kind == EventKind::run &&
                         recording.operators[static_cast<size_t>(event.id)].phase == forecast::Phase::update;
    if (!reduced && (updates || event.kind == EventKind::step_end)) reduce();
    if (event.kind == EventKind::step_begin) reduced = false;
    made.events.push_back(event);
  }
  return made;
}

}  // namespace lockstep::planning
