// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/memory.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/forecast/allocator.h"
#include "lockstep/forecast/workspace.h"

namespace lockstep::forecast {
namespace {

constexpr size_t kMaxLargest = 20;
constexpr int64_t kMaxCurvePoints = 400;
constexpr int64_t kGraphPool = 1;
constexpr int64_t kCublasLtBytes = int64_t{1} << 20;  // seen once a process, right behind the first workspace

using ByClass = std::array<int64_t, kMemoryClasses>;

// What a step has whatever its batch.
constexpr MemoryClass kFixed[] = {MemoryClass::weights, MemoryClass::gradients, MemoryClass::optimizer,
                                  MemoryClass::averages, MemoryClass::buckets};

struct Living {
  Allocator::Block block = -1;  // -1: a storage of no bytes
  MemoryClass memory = MemoryClass::other;
  size_t born = 0;  // event
};

// One pass over the events with an allocator underneath.
class MemoryReplay {
 public:
  MemoryReplay(const Recording& recording, const MemoryRules& rules, const Recording* odd, int64_t capacity)
      : recording_(recording),
        odd_(odd),
        rules_(rules),
        allocator_({.expandable_segments = rules.expandable_segments, .capacity = capacity}) {
    size_t begin = 0;
    for (size_t i = 0; i < recording.events.size(); ++i) {
      if (recording.events[i].kind == EventKind::step_begin) begin = i;
    }
    last_step_ = begin;
    const auto length = static_cast<int64_t>(recording.events.size() - begin);
    stride_ = std::max<int64_t>(1, (length + kMaxCurvePoints - 1) / kMaxCurvePoints);
  }

  // False: out of memory.
  bool run() {
    for (size_t i = 0; i < recording_.events.size(); ++i) {
      if (!apply(recording_.events[i], i)) return false;
      if (i >= last_step_) sample(i);
    }
    return true;
  }

  MemoryForecast result() {
    MemoryForecast forecast;
    forecast.peak_allocated = peak_;
    forecast.peak_reserved = allocator_.peaks().reserved;
    forecast.cold_peak_reserved = cold_reserved_ > 0 ? cold_reserved_ : forecast.peak_reserved;
    forecast.fragmentation = reserved_at_peak_ - peak_;
    for (size_t i = 0; i < kMemoryClasses; ++i) {
      if (by_class_at_peak_[i] > 0) forecast.by_class[static_cast<MemoryClass>(i)] = by_class_at_peak_[i];
    }
    forecast.fixed = fixed_;
    forecast.moment = moment();
    forecast.largest = largest();
    forecast.curve = std::move(curve_);
    forecast.beside_graph = beside_graph_;
    forecast.retries = allocator_.num_retries();
    return forecast;
  }

 private:
  bool apply(const Event& event, size_t index) {
    switch (event.kind) {
      case EventKind::birth:
        return give_birth(event, index);
      case EventKind::death:
        bury(event.id);
        return true;
      case EventKind::run:
        return execute(recording_.operators[static_cast<size_t>(event.id)], event.thread, index);
      case EventKind::step_end:
        if (!is_captured(index)) return true;
        ended_ = true;  // what follows, an evaluation, takes from the common pool
        pool_ = 0;
        has_workspace_ = {true, true};
        return !odd_ || run_odd(index);
      case EventKind::step_begin:
        ++step_;
        if (step_ == 2) {  // the promise is about warm steps: what came before counts no longer
          cold_reserved_ = allocator_.peaks().reserved;
          allocator_.reset_peaks();
          peak_ = 0;
          note_peak(index);
        }
        return true;
      default:
        return true;
    }
  }

  // As step::StepGraph does it: what is kept unused goes back, the inputs are copied, and from here on everything comes
  // from a pool of the graph's own, with workspaces of its own.
  bool begin_capture(size_t index) {
    allocator_.empty_cache();
    std::vector<int64_t> copies;
    for (const int64_t id : inputs_) {
      const auto found = living_.find(id);
      if (found != living_.end() && found->second.block >= 0) copies.push_back(input_bytes_[id]);
    }
    for (const int64_t bytes : copies) {
      const auto block = allocator_.allocate(bytes);
      if (!block) return false;
      now_[static_cast<size_t>(MemoryClass::inputs)] += allocator_.size(*block);
      note_peak(index);
    }
    pool_ = kGraphPool;
    has_workspace_ = {};
    return true;
  }

  // As step::StepGraph does it with a batch of another shape: the last step of `odd_`, operator by operator, from the
  // common pool. What it frees that was born before it is the captured step's, which keeps it.
  bool run_odd(size_t index) {
    beside_ = true;
    const int64_t before = allocator_.now().reserved;
    const auto& events = odd_->events;
    size_t begin = events.size();
    while (begin > 0 && events[begin - 1].kind != EventKind::step_begin) --begin;
    for (size_t i = begin; i < events.size() && events[i].kind != EventKind::step_end; ++i) {
      Event event = events[i];
      if (event.kind == EventKind::run) {
        if (!execute(odd_->operators[static_cast<size_t>(event.id)], event.thread, index)) return false;
        continue;
      }
      event.id = -1 - event.id;  // another storage than that of the captured step
      if (event.kind == EventKind::birth && !give_birth(event, index)) return false;
      if (event.kind == EventKind::death) bury(event.id);
    }
    beside_graph_ = allocator_.now().reserved - before;
    beside_ = false;
    return true;
  }

  bool is_captured(size_t index) const { return recording_.captured && index > last_step_ && !ended_; }

  bool give_birth(const Event& event, size_t index) {
    Living living{.block = -1, .memory = event.memory, .born = index};
    if (is_captured(index) && event.memory == MemoryClass::inputs && pool_ == 0) {
      inputs_.push_back(event.id);
      input_bytes_[event.id] = event.bytes;
    } else if (is_captured(index) && pool_ == 0 && !begin_capture(index)) {
      return false;
    }
    if (event.bytes > 0) {
      const auto block = allocator_.allocate(event.bytes, pool_);
      if (!block) return false;
      living.block = *block;
      now_[static_cast<size_t>(event.memory)] += allocator_.size(*block);
      note_peak(index);
      if (!ended_) note_fixed();  // a batch of another shape beside the captured step has gradients of its own
    }
    living_[event.id] = living;
    return true;
  }

  void bury(int64_t id) {
    const auto found = living_.find(id);
    if (found == living_.end()) return;
    if (found->second.block >= 0) {
      now_[static_cast<size_t>(found->second.memory)] -= allocator_.size(found->second.block);
      allocator_.free(found->second.block);
    }
    living_.erase(found);
  }

  bool execute(const Operator& call, int8_t thread, size_t index) {
    if (call.kind == OperatorClass::matmul && rules_.cublas_workspace > 0) {
      bool& has = has_workspace_[static_cast<size_t>(thread & 1)];
      const bool first = !has_workspace_[0] && !has_workspace_[1] && pool_ == 0;
      if (!has && !hold_workspace(rules_.cublas_workspace, index)) return false;
      if (first && !hold_workspace(kCublasLtBytes, index)) return false;
      has = true;
    }
    const int64_t bytes = call_workspace(call, rules_, recording_.layout);
    if (bytes == 0) return true;
    const auto block = hold_workspace(bytes, index);
    if (!block) return false;
    now_[static_cast<size_t>(MemoryClass::workspaces)] -= allocator_.size(*block);
    allocator_.free(*block);
    return true;
  }

  std::optional<Allocator::Block> hold_workspace(int64_t bytes, size_t index) {
    const auto block = allocator_.allocate(bytes, pool_);
    if (!block) return std::nullopt;
    now_[static_cast<size_t>(MemoryClass::workspaces)] += allocator_.size(*block);
    note_peak(index);
    return block;
  }

  void note_peak(size_t index) {
    if (allocator_.now().allocated <= peak_) return;
    peak_ = allocator_.now().allocated;
    reserved_at_peak_ = allocator_.now().reserved;
    by_class_at_peak_ = now_;
    peak_event_ = index;
    peak_step_ = step_;
    peak_beside_ = beside_;
  }

  // At the peak, which is often early in the backward pass, many gradients are not there yet.
  void note_fixed() {
    int64_t bytes = 0;
    for (const auto kind : kFixed) bytes += now_[static_cast<size_t>(kind)];
    fixed_ = std::max(fixed_, bytes);
  }

  // Of each interval of events the moment with the most alive.
  void sample(size_t index) {
    int64_t total = 0;
    for (const int64_t bytes : now_) total += bytes;
    const int64_t interval = static_cast<int64_t>(index - last_step_) / stride_;
    const bool opens = interval != interval_;
    if (!opens && total <= interval_total_) return;
    if (opens) curve_.emplace_back();
    interval_ = interval;
    interval_total_ = total;
    curve_.back() = {.event = static_cast<int64_t>(index), .by_class = now_};
  }

  // The operator that runs at or after the event.
  const Operator* next_run(size_t index) const {
    for (size_t i = index; i < recording_.events.size(); ++i) {
      const Event& event = recording_.events[i];
      if (event.kind == EventKind::run) return &recording_.operators[static_cast<size_t>(event.id)];
    }
    return nullptr;
  }

  std::string describe(const Operator& call, const char* separator) const {
    const bool in_block = call.block >= 0 && call.block < static_cast<int64_t>(recording_.blocks.size());
    return base::text(call.name, separator, in_block ? recording_.blocks[static_cast<size_t>(call.block)] : "");
  }

  std::string moment() const {
    if (peak_beside_) return "a batch of another shape beside the CUDA graph";
    const Operator* call = next_run(peak_event_);
    std::string step = peak_step_ > 0 ? base::text("step ", peak_step_) : "before the first step";
    if (call == nullptr) return step;
    return base::text(step, ", ", name_of(call->phase), ", ", describe(*call, call->block >= 0 ? " of " : ""));
  }

  std::vector<AliveBlock> largest() const {
    std::unordered_map<int64_t, size_t> born;  // alive at the peak: id -> birth
    for (size_t i = 0; i <= peak_event_ && i < recording_.events.size(); ++i) {
      const Event& event = recording_.events[i];
      if (event.kind == EventKind::birth) born[event.id] = i;
      if (event.kind == EventKind::death) born.erase(event.id);
    }
    std::vector<size_t> births;
    births.reserve(born.size());
    for (const auto& [id, birth] : born) births.push_back(birth);
    const auto before = [&](size_t a, size_t b) {
      const int64_t left = recording_.events[a].bytes;
      const int64_t right = recording_.events[b].bytes;
      return left != right ? left > right : a < b;
    };
    const size_t count = std::min(kMaxLargest, births.size());
    std::partial_sort(births.begin(), births.begin() + static_cast<int64_t>(count), births.end(), before);
    std::vector<AliveBlock> blocks;
    for (size_t i = 0; i < count; ++i) {
      const Event& birth = recording_.events[births[i]];
      const Operator* call = next_run(births[i]);
      std::string who = call ? base::text(call->name, " ", name_of(call->phase)) : "";
      if (call && call->block >= 0) who = base::text(who, " ", describe(*call, "").substr(call->name.size()));
      blocks.push_back({.memory = birth.memory, .bytes = birth.bytes, .born_by = who});
    }
    return blocks;
  }

  const Recording& recording_;
  const Recording* odd_;
  const MemoryRules& rules_;
  Allocator allocator_;
  std::unordered_map<int64_t, Living> living_;
  int64_t pool_ = 0;    // that storages come from: the allocator has one for each stream, and a graph is like one
  bool ended_ = false;  // the captured step
  std::vector<int64_t> inputs_;  // of the step that is captured
  std::unordered_map<int64_t, int64_t> input_bytes_;
  ByClass now_{};
  ByClass by_class_at_peak_{};
  std::array<bool, 2> has_workspace_{};
  std::vector<MemoryPoint> curve_;
  size_t last_step_ = 0;
  size_t peak_event_ = 0;
  int64_t stride_ = 1;
  int64_t interval_ = -1;
  int64_t interval_total_ = 0;
  int64_t step_ = 0;
  int64_t peak_step_ = 0;
  int64_t peak_ = 0;
  int64_t reserved_at_peak_ = 0;
  int64_t cold_reserved_ = 0;
  bool beside_ = false;  // the smaller batch runs
  bool peak_beside_ = false;
  int64_t beside_graph_ = 0;  // bytes reserved for it
  int64_t fixed_ = 0;
};

}  // namespace

MemoryForecast forecast_memory(const Recording& recording, const MemoryRules& rules, const Recording* odd) {
  const int64_t outside = rules.context + (recording.ranks > 1 ? rules.nccl : 0);
  const auto finish = [&](MemoryReplay& replay) {
    MemoryForecast forecast = replay.result();
    forecast.context = rules.context;
    forecast.nccl = recording.ranks > 1 ? rules.nccl : 0;
    forecast.total = forecast.peak_reserved + outside;
    return forecast;
  };
  MemoryReplay endless(recording, rules, odd, 0);
  if (!endless.run()) {
    throw base::Error(base::Blame::user,
                      base::text("the recording of ", recording.title, " needs more than 2^60 bytes"),
                      "record it again: no GPU could hold a part of it");
  }
  MemoryForecast forecast = finish(endless);
  const int64_t most = std::max(forecast.peak_reserved, forecast.cold_peak_reserved) + outside;
  if (rules.capacity == 0 || most <= rules.capacity) return forecast;
  if (rules.capacity > outside) {
    MemoryReplay limited(recording, rules, odd, rules.capacity - outside);
    if (limited.run()) return finish(limited);
  }
  forecast.fits = false;
  return forecast;
}

}  // namespace lockstep::forecast
