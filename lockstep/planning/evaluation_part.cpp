// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/evaluation_part.h"

#include <cstdint>
#include <map>
#include <set>

#include "lockstep/base/error.h"

namespace lockstep::planning {
namespace {

using forecast::Event;
using forecast::EventKind;
using forecast::Operator;
using forecast::Phase;
using forecast::Recording;

const Operator& call_of(const Recording& recording, const Event& event) {
  return recording.operators[static_cast<size_t>(event.id)];
}

bool evaluates(const Recording& recording, const Event& event) {
  return event.kind == EventKind::run && call_of(recording, event).phase == Phase::evaluate;
}

// The events of the evaluation and those around it that are no operators: from behind the last operator before it to
// the end of its step; behind a captured step it comes once more, and is the rest. Whatever is born there is the
// evaluation's.
struct Part {
  size_t begin = 0;
  size_t end = 0;
  size_t again = SIZE_MAX;  // where it comes once more

  bool holds(size_t index) const { return (index >= begin && index < end) || index >= again; }
};

Part find_part(const Recording& recording) {
  Part part;
  const auto& events = recording.events;
  size_t first = 0;
  while (first < events.size() && !evaluates(recording, events[first])) {
    const EventKind kind = events[first].kind;
    if (kind == EventKind::run || kind == EventKind::step_begin) part.begin = first + 1;
    ++first;
  }
  base::ensure(first < events.size(), "the recording has an evaluation");
  part.end = first;
  while (part.end < events.size() && events[part.end].kind != EventKind::step_end) ++part.end;
  if (recording.captured) {
    part.again = events.size();
    while (part.again > part.end && events[part.again - 1].kind != EventKind::step_end) --part.again;
  }
  return part;
}

// Operators in the order in which they first run, each once, as a trace lists them.
class Calls {
 public:
  int64_t index(const Recording& recording, int64_t id) {
    const auto [found, is_new] = known_.try_emplace({&recording, id}, static_cast<int64_t>(list_.size()));
    if (is_new) list_.push_back(recording.operators[static_cast<size_t>(id)]);
    return found->second;
  }
  std::vector<Operator> take() { return std::move(list_); }

 private:
  std::map<std::pair<const Recording*, int64_t>, int64_t> known_;
  std::vector<Operator> list_;
};

}  // namespace

Recording without_evaluation(const Recording& recording) {
  const Part part = find_part(recording);
  Recording made = recording;
  made.events.clear();
  std::set<int64_t> left_out;
  std::map<int64_t, int64_t> ids;  // of what is born behind it: storages are numbered without gaps
  Calls calls;
  for (size_t i = 0; i < recording.events.size(); ++i) {
    Event event = recording.events[i];
    if (evaluates(recording, event)) continue;
    if (event.kind == EventKind::birth && part.holds(i)) {
      left_out.insert(event.id);
      continue;
    }
    if (event.kind == EventKind::death && left_out.contains(event.id)) continue;
    if (event.kind == EventKind::birth && i >= part.end) {
      ids[event.id] = event.id - static_cast<int64_t>(left_out.size());
    }
    if (event.kind == EventKind::run) event.id = calls.index(recording, event.id);
    if (event.kind == EventKind::birth || event.kind == EventKind::death) {
      const auto moved = ids.find(event.id);
      if (moved != ids.end()) event.id = moved->second;
    }
    made.events.push_back(event);
  }
  made.operators = calls.take();
  return made;
}

Recording without_graph(Recording recording) {
  if (!recording.captured) return recording;
  recording.events.resize(find_part(recording).again);
  recording.captured = false;
  return recording;
}

Recording with_evaluation_of(const Recording& recording, const Recording& other) {
  const Part part = find_part(recording);
  Recording made = recording;
  Calls calls;
  for (size_t i = 0; i < made.events.size(); ++i) {
    Event& event = made.events[i];
    if (event.kind == EventKind::birth && part.holds(i)) event.bytes = other.events[i].bytes;
    if (event.kind != EventKind::run) continue;
    const Recording& source = evaluates(recording, event) ? other : recording;
    event.id = calls.index(source, source.events[i].id);
  }
  made.operators = calls.take();
  return made;
}

}  // namespace lockstep::planning
