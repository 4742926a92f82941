// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/pulse.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/thread.h"

namespace lockstep::run {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kBetweenHeartbeats = std::chrono::seconds(1);
constexpr size_t kNumPhases = static_cast<size_t>(Phase::ending) + 1;

}  // namespace

struct Activity::Inside {
  mutable std::mutex mutex;
  Phase phase = Phase::loading;
  Clock::time_point since = Clock::now();
  std::array<double, kNumPhases> longest{};
  int64_t moves = 0;
  int64_t step = 0;
  std::function<Calls()> calls;

  // The stay in the present phase ends, or starts again.
  void move_on(Phase next) {
    const auto now = Clock::now();
    double& longest_here = longest[static_cast<size_t>(phase)];
    longest_here = std::max(longest_here, std::chrono::duration<double>(now - since).count());
    phase = next;
    since = now;
    ++moves;
  }
};

Activity::Activity() : inside_(std::make_unique<Inside>()) {}
Activity::~Activity() = default;

void Activity::enter(Phase phase) {
  const std::lock_guard lock(inside_->mutex);
  inside_->move_on(phase);
}

void Activity::step_done(int64_t step) {
  const std::lock_guard lock(inside_->mutex);
  inside_->step = step;
  ++inside_->moves;
}

void Activity::watch_calls(std::function<Calls()> calls) {
  const std::lock_guard lock(inside_->mutex);
  inside_->calls = std::move(calls);
}

void Activity::write_into(Heartbeat& heartbeat) const {
  const std::lock_guard lock(inside_->mutex);
  heartbeat.phase = inside_->phase;
  heartbeat.longest = inside_->longest[static_cast<size_t>(inside_->phase)];
  heartbeat.moves = inside_->moves;
  heartbeat.step = inside_->step;
  if (!inside_->calls) return;
  const Calls calls = inside_->calls();
  heartbeat.call = calls.waiting;
  heartbeat.calls = calls.started;
  heartbeat.answered = calls.answered;
  heartbeat.call_failed = calls.failed;
  heartbeat.calls_whole = calls.whole;
}

Activity::During::During(Activity& activity, Phase phase) : activity_(activity), before_(activity.inside_->phase) {
  activity.enter(phase);
}

Activity::During::~During() {
  activity_.enter(before_);
}

class Pulse::Thread {
 public:
  Thread(base::Path file, std::string world, int64_t rank, const Activity& activity)
      : file_(std::move(file)), activity_(activity) {
    heartbeat_.world = std::move(world);
    heartbeat_.rank = rank;
    heartbeat_.who = this_process();
    heartbeat_.who.since.clear();
    write();
    thread_ = std::jthread([this](const std::stop_token& stop) { loop(stop); });
  }

  void write() {
    const std::lock_guard one_at_a_time(writing_);
    activity_.write_into(heartbeat_);
    ++heartbeat_.count;
    try {
      write_heartbeat(file_, heartbeat_);
    } catch (const base::Error&) {
      // Said nowhere, on purpose: the supervisor misses the heartbeat, and training does not need it.
    }
  }

 private:
  void loop(const std::stop_token& stop) {
    ::pthread_setname_np(::pthread_self(), "pulse");
    base::leave_signals_to_others();
    std::unique_lock hold(sleeping_);
    while (!wake_.wait_for(hold, stop, kBetweenHeartbeats, [&] { return stop.stop_requested(); })) write();
    write();
  }

  base::Path file_;
  const Activity& activity_;
  Heartbeat heartbeat_;
  std::mutex writing_, sleeping_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: it uses all of the above
};

Pulse::Pulse(base::Path file, std::string world, int64_t rank, const Activity& activity)
    : thread_(std::make_unique<Thread>(std::move(file), std::move(world), rank, activity)) {}

Pulse::~Pulse() = default;

void Pulse::write_now() {
  thread_->write();
}

}  // namespace lockstep::run
