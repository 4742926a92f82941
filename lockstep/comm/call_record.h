// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace lockstep::comm {

// Where a rank stands among its collectives. They start in the same order on every rank: the one with the smallest
// number is the one that the others wait for.
struct CallState {
  std::string waiting;   // the oldest call that is under way; empty: none
  int64_t started = 0;   // collectives; what goes between two ranks only is not counted
  int64_t answered = 0;  // of these, done
  bool failed = false;   // one ended in an error
  bool whole = true;     // every collective is told; false: only those for which the host waits

  bool operator==(const CallState&) const = default;
};

// The calls of one rank, written where they start and end, read by whoever watches. Any thread.
class CallRecord {
 public:
  enum class Among { all, two };

  // A ticket for end(). `name` is for people: "all-reduce".
  int64_t begin(const char* name, Among among);
  void end(int64_t ticket, bool good);
  CallState state() const;

 private:
  struct Call {
    const char* name;
    Among among;
  };
  mutable std::mutex mutex_;
  std::map<int64_t, Call> under_way_;  // by ticket, so the first is the oldest
  int64_t tickets_ = 0;
  CallState state_;
};

// A Group that can say where its rank stands; ask one with dynamic_cast.
class TellsCalls {
 public:
  virtual ~TellsCalls() = default;
  virtual CallState calls() const = 0;  // any thread
};

}  // namespace lockstep::comm
