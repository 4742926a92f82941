// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/family.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "lockstep/base/error.h"
#include "lockstep/forecast/kernel_grid.h"

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

// Bytes of the partial sums of our own kernels, which do not grow in proportion to what is summed; 0: it has none.
int64_t partial_sum_bytes(const Operator& call) {
  const auto& shape = call.shape;
  int64_t numel = 1;
  for (const int64_t size : shape) numel *= size;
  if (numel == 0) return 0;
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  if (call.name == "lockstep::add_layer_norm_backward" && !shape.empty()) {
    return kFloat * TokenGrid(numel / shape.back(), shape.back()).sums();
  }
  const bool over_rows = call.name == "lockstep::fused_batch_norm" ||
                         call.name == "lockstep::fused_batch_norm_backward" || call.name == "lockstep::column_sums" ||
                         call.name == "lockstep::gelu_backward";
  if (!over_rows || shape.size() < 2 || shape[1] < BatchNormGrid::kVector) return 0;
  return kFloat * BatchNormGrid(numel / shape[1], shape[1]).sums();
}

bool same_kind(const Operator& a, const Operator& b) {
  return a.name == b.name && a.kind == b.kind && a.type == b.type && a.phase == b.phase && a.launches == b.launches &&
         a.block == b.block && a.shape.size() == b.shape.size();
}

bool same_kind(const Event& a, const Event& b) {
  return a.kind == b.kind && (a.kind == EventKind::run || a.id == b.id) && a.memory == b.memory &&
         a.collective == b.collective && a.thread == b.thread;
}

Operator on_line(const Line& line, const Operator& a, const Operator& b) {
  Operator made = a;
  made.flops = line.at(a.flops, b.flops);
  for (size_t i = 0; i < made.shape.size(); ++i) made.shape[i] = line.at(a.shape[i], b.shape[i]);
  const auto sums = [](const Operator& call) { return 2.0 * static_cast<double>(partial_sum_bytes(call)); };
  made.bytes = line.at(a.bytes - sums(a), b.bytes - sums(b)) + sums(made);  // written once and read once
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
        on_line(line_, a_.operators[static_cast<size_t>(of_a)], b_.operators[static_cast<size_t>(of_b)]);
    const auto [same, is_first] = by_value_.try_emplace(made, static_cast<int64_t>(operators_.size()));
    if (is_first) operators_.push_back(made);
    return known->second = same->second;
  }
  const Operator& at(int64_t index) const { return operators_[static_cast<size_t>(index)]; }
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
  size_t upper = 1;  // the segment: between two members, or the outermost two
  while (upper + 1 < members_.size() && members_[upper].micro_batch < micro_batch) ++upper;
  return between(members_[upper - 1], members_[upper], micro_batch);
}

Recording Family::between(const Recording& a, const Recording& b, int64_t micro_batch) {
  base::ensure(micro_batch > 0, "a batch has samples");
  if (micro_batch == a.micro_batch) return a;
  if (micro_batch == b.micro_batch) return b;
  const Line line{a.micro_batch, b.micro_batch, micro_batch};
  Recording made = a;
  made.micro_batch = micro_batch;
  made.checkpoint_bytes = line.at(a.checkpoint_bytes, b.checkpoint_bytes);
  OperatorTable table(a, b, line);
  size_t last_birth = 0;  // of a kernel that has partial sums: theirs
  for (size_t i = 0; i < made.events.size(); ++i) {
    Event& event = made.events[i];
    event.bytes = line.at(a.events[i].bytes, b.events[i].bytes);
    base::ensure(event.bytes >= 0, "bytes grow with the batch");
    if (event.kind == EventKind::birth) last_birth = i;
    if (event.kind != EventKind::run) continue;
    event.id = table.index(a.events[i].id, b.events[i].id);
    const int64_t sums = partial_sum_bytes(table.at(event.id));
    if (sums > 0) made.events[last_birth].bytes = sums;
  }
  made.operators = table.take();
  return made;
}

}  // namespace lockstep::forecast
