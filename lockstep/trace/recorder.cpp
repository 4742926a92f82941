// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trace/recorder.h"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace lockstep::trace {

using forecast::Event;
using forecast::EventKind;
using forecast::MemoryClass;
using forecast::Operator;
using forecast::Phase;

Recorder::Recorder() : main_(std::this_thread::get_id()), main_number_(at::RecordFunction::currentThreadId()) {}

size_t Recorder::Hash::operator()(const Operator& call) const {
  size_t hash = std::hash<std::string>()(call.name);
  const auto mix = [&](size_t value) { hash ^= value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2); };
  mix(std::hash<double>()(call.bytes));
  mix(static_cast<size_t>(call.block) * 64 + static_cast<size_t>(call.phase));
  for (const int64_t size : call.shape) mix(static_cast<size_t>(size));
  return hash;
}

void Recorder::add(Event event) {
  event.thread = on_main() ? 0 : 1;
  if (on_main()) {
    for (const int64_t id : handed_over_) recording_.events.push_back({.kind = EventKind::wait, .id = id});
    handed_over_.clear();
  }
  recording_.events.push_back(event);
}

int64_t Recorder::birth(int64_t bytes) {
  if (bytes == 0) return -1;
  const std::scoped_lock lock(mutex_);
  if (finished_) return -1;
  const auto id = static_cast<int64_t>(births_.size());
  add({.kind = EventKind::birth, .id = id, .bytes = bytes, .memory = MemoryClass::activations});
  births_.push_back(recording_.events.size() - 1);
  return id;
}

void Recorder::death(int64_t id) {
  const std::scoped_lock lock(mutex_);
  if (id < 0 || finished_) return;
  add({.kind = EventKind::death, .id = id});
}

void Recorder::classify(int64_t id, MemoryClass memory) {
  const std::scoped_lock lock(mutex_);
  if (id >= 0) recording_.events[births_[static_cast<size_t>(id)]].memory = memory;
}

void Recorder::classify_from(int64_t first, MemoryClass memory) {
  const std::scoped_lock lock(mutex_);
  for (auto id = static_cast<size_t>(first); id < births_.size(); ++id) recording_.events[births_[id]].memory = memory;
}

int64_t Recorder::next_storage() const {
  const std::scoped_lock lock(mutex_);
  return static_cast<int64_t>(births_.size());
}

// The step tells nobody where it is; its operators do. Lists of gradients are touched by the update alone, and only on
// the main thread; everything on autograd's thread is backward.
Phase Recorder::phase_of(const Operator& call) {
  if (!on_main()) return Phase::backward;
  const bool updates = call.name.starts_with("aten::_foreach") || call.name.starts_with("aten::_fused") ||
                       call.name == "lockstep::gradient_norm";
  if (phase_ == Phase::forward && updates) phase_ = Phase::update;
  return phase_;
}

// A node of the graph has the number that counted up while its block ran forward.
int64_t Recorder::block_now() {
  if (on_main()) return block_;
  if (autograd_block_ >= 0) return autograd_block_;
  const auto node = torch::autograd::get_current_node();
  if (!node || node->sequence_nr() == UINT64_MAX) return last_backward_;  // adds a gradient up
  const Marks& marks = node->thread_id() == main_number_ ? marks_ : autograd_marks_;
  const auto after = std::upper_bound(marks.begin(), marks.end(), node->sequence_nr(),
                                      [](uint64_t number, const Mark& mark) { return number < mark.sequence; });
  last_backward_ = after == marks.begin() ? -1 : std::prev(after)->block;
  return last_backward_;
}

void Recorder::run(Operator call) {
  const std::scoped_lock lock(mutex_);
  if (finished_) return;
  call.phase = phase_of(call);
  call.block = block_now();
  const auto [found, fresh] = operators_.try_emplace(call, static_cast<int64_t>(recording_.operators.size()));
  if (fresh) recording_.operators.push_back(std::move(call));
  add({.kind = EventKind::run, .id = found->second});
}

void Recorder::estimated(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  auto& names = recording_.estimated;
  if (!finished_ && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

void Recorder::enter_block(int64_t index) {
  const std::scoped_lock lock(mutex_);
  (on_main() ? block_ : autograd_block_) = index;
  (on_main() ? marks_ : autograd_marks_).push_back({at::sequence_number::peek(), index});
}

int64_t Recorder::collective(forecast::CollectiveKind kind, int64_t bytes) {
  const std::scoped_lock lock(mutex_);
  if (finished_) return -1;
  const int64_t id = num_collectives_++;
  add({.kind = EventKind::collective, .id = id, .bytes = bytes, .collective = kind});
  if (!on_main() && kind == forecast::CollectiveKind::all_reduce) handed_over_.push_back(id);
  return id;
}

void Recorder::wait(int64_t collective) {
  const std::scoped_lock lock(mutex_);
  if (finished_ || collective < 0) return;
  std::erase(handed_over_, collective);
  add({.kind = EventKind::wait, .id = collective});
}

void Recorder::step_begin() {
  const std::scoped_lock lock(mutex_);
  phase_ = Phase::forward;
  marks_.clear();
  autograd_marks_.clear();
  add({.kind = EventKind::step_begin, .id = recording_.steps});
}

void Recorder::step_end() {
  const std::scoped_lock lock(mutex_);
  add({.kind = EventKind::step_end, .id = recording_.steps});
  ++recording_.steps;
}

void Recorder::evaluation_begin() {
  const std::scoped_lock lock(mutex_);
  phase_ = Phase::evaluate;
}

forecast::Recording Recorder::finish() {
  const std::scoped_lock lock(mutex_);
  finished_ = true;
  return std::move(recording_);
}

}  // namespace lockstep::trace
