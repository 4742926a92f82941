// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/family.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "lockstep/base/error.h"

namespace lockstep::forecast {
namespace {

// The line through (x0, y0) and (x1, y1), in whole numbers. Rounded up where it is not whole: never too few bytes.
struct Line {
  int64_t x0, x1, x;

  int64_t at(int64_t y0, int64_t y1) const {
    if (y0 == y1) return y0;
    const __int128 rise = static_cast<__int128>(y1 - y0) * (x - x0);
    const __int128 run = x1 - x0;
    __int128 whole = rise / run;
    if (rise % run > 0) ++whole;  // run > 0, so the remainder has the sign of the rise
    return y0 + static_cast<int64_t>(whole);
  }
  // FLOPs and bytes are whole numbers kept as doubles; exact up to 2^63.
  double at(double y0, double y1) const {
    if (y0 == y1) return y0;
    constexpr double kExact = 9e18;
    const bool whole = y0 == std::floor(y0) && y1 == std::floor(y1) && std::abs(y0) < kExact && std::abs(y1) < kExact;
    if (whole) return static_cast<double>(at(static_cast<int64_t>(y0), static_cast<int64_t>(y1)));
    return y0 + (y1 - y0) * static_cast<double>(x - x0) / static_cast<double>(x1 - x0);
  }
};

bool same_kind(const Operator& a, const Operator& b) {
  return a.name == b.name && a.kind == b.kind && a.type == b.type && a.phase == b.phase && a.launches == b.launches &&
         a.block == b.block && a.shape.size() == b.shape.size();
}

bool same_kind(const Event& a, const Event& b) {
  return a.kind == b.kind && (a.kind == EventKind::run || a.id == b.id) && a.memory == b.memory &&
         a.collective == b.collective && a.thread == b.thread;
}

Operator between(const Line& line, const Operator& a, const Operator& b) {
  Operator made = a;
  made.flops = line.at(a.flops, b.flops);
  made.bytes = line.at(a.bytes, b.bytes);
  for (size_t i = 0; i < made.shape.size(); ++i) made.shape[i] = line.at(a.shape[i], b.shape[i]);
  return made;
}

bool before(const Operator& a, const Operator& b) {
  const auto key = [](const Operator& op) {
    return std::tie(op.name, op.kind, op.type, op.phase, op.flops, op.bytes, op.launches, op.block, op.shape);
  };
  return key(a) < key(b);
}

// The operators of the new recording in the order in which they first run, each distinct call once, as a trace lists
// them. Two calls that are one at this batch may be two at another, so pairs are looked at, not indices.
class OperatorTable {
 public:
  OperatorTable(const Recording& a, const Recording& b, const Line& line) : a_(a), b_(b), line_(line) {}

  int64_t index(int64_t of_a, int64_t of_b) {
    const auto [known, is_new] = by_pair_.try_emplace({of_a, of_b}, 0);
    if (!is_new) return known->second;
    const Operator made =
        between(line_, a_.operators[static_cast<size_t>(of_a)], b_.operators[static_cast<size_t>(of_b)]);
    const auto [same, is_first] = by_value_.try_emplace(made, static_cast<int64_t>(operators_.size()));
    if (is_first) operators_.push_back(made);
    return known->second = same->second;
  }
  std::vector<Operator> take() { return std::move(operators_); }

 private:
  const Recording& a_;
  const Recording& b_;
  Line line_;
  std::map<std::pair<int64_t, int64_t>, int64_t> by_pair_;
  std::map<Operator, int64_t, bool (*)(const Operator&, const Operator&)> by_value_{before};
  std::vector<Operator> operators_;
};

}  // namespace

bool Family::corresponds(const Recording& a, const Recording& b) {
  if (a.events.size() != b.events.size() || a.accumulation != b.accumulation || a.ranks != b.ranks ||
      a.steps != b.steps || a.blocks != b.blocks || a.parameters != b.parameters) {
    return false;
  }
  for (size_t i = 0; i < a.events.size(); ++i) {
    if (!same_kind(a.events[i], b.events[i])) return false;
    if (a.events[i].kind != EventKind::run) continue;
    if (!same_kind(a.operators[static_cast<size_t>(a.events[i].id)],
                   b.operators[static_cast<size_t>(b.events[i].id)])) {
      return false;
    }
  }
  return true;
}

Family::Family(std::vector<Recording> members) : members_(std::move(members)) {
  base::ensure(members_.size() >= 2, "a family has at least two recordings");
  std::sort(members_.begin(), members_.end(),
            [](const Recording& a, const Recording& b) { return a.micro_batch < b.micro_batch; });
  for (size_t i = 1; i < members_.size(); ++i) {
    base::ensure(members_[i - 1].micro_batch < members_[i].micro_batch, "recordings of a family differ in their batch");
    base::ensure(corresponds(members_[i - 1], members_[i]), "recordings of a family have the same events");
  }
}

Recording Family::at(int64_t micro_batch) const {
  base::ensure(micro_batch > 0, "a batch has samples");
  size_t upper = 1;  // the segment: between two members, or the outermost two
  while (upper + 1 < members_.size() && members_[upper].micro_batch < micro_batch) ++upper;
  const Recording& a = members_[upper - 1];
  const Recording& b = members_[upper];
  if (micro_batch == a.micro_batch) return a;
  if (micro_batch == b.micro_batch) return b;
  const Line line{a.micro_batch, b.micro_batch, micro_batch};
  Recording made = a;
  made.micro_batch = micro_batch;
  made.checkpoint_bytes = line.at(a.checkpoint_bytes, b.checkpoint_bytes);
  OperatorTable table(a, b, line);
  for (size_t i = 0; i < made.events.size(); ++i) {
    Event& event = made.events[i];
    if (event.kind == EventKind::run) event.id = table.index(a.events[i].id, b.events[i].id);
    event.bytes = line.at(a.events[i].bytes, b.events[i].bytes);
    base::ensure(event.bytes >= 0, "bytes grow with the batch");
  }
  made.operators = table.take();
  return made;
}

}  // namespace lockstep::forecast
