// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lockstep/run/heartbeat.h"

namespace lockstep::run {

// The collectives of a rank so far, as its communicator counts them.
struct Calls {
  std::string waiting;  // the oldest that is under way; empty: none
  int64_t started = 0;
  int64_t answered = 0;
  bool failed = false;
  bool whole = true;  // every collective is told
};

// What the training thread is doing, for the supervisor. Safe to read while it is written.
class Activity {
 public:
  Activity();
  ~Activity();
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

  void enter(Phase phase);
  void step_done(int64_t step);
  // Asked at every heartbeat until it is set to nothing.
  void watch_calls(std::function<Calls()> calls);
  void write_into(Heartbeat& heartbeat) const;

  // Enters that phase until the end of the scope, then goes back to the one before.
  class During {
   public:
    During(Activity& activity, Phase phase);
    ~During();
    During(const During&) = delete;
    During& operator=(const During&) = delete;

   private:
    Activity& activity_;
    Phase before_;
  };

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

// Writes the heartbeat of a rank every second, in a thread of its own. A heartbeat shows that the process runs; the
// activity in it shows that the training thread makes progress. The last one is written at the end of the scope. A file
// system that refuses a heartbeat does not stop training.
class Pulse {
 public:
  Pulse(base::Path file, std::string world, int64_t rank, const Activity& activity);
  ~Pulse();
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

  void write_now();  // before leaving in a hurry

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
};

}  // namespace lockstep::run
