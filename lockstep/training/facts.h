// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/training/promise.h"

namespace lockstep::training {

// One line of promise against fact.
struct Comparison {
  enum class Unit { seconds, per_second, bytes };
  std::string what;
  Unit unit = Unit::seconds;
  double promised = 0, low = 0, high = 0;
  double measured = 0;

  double deviation() const { return measured / promised - 1; }
  bool inside() const { return measured >= low && measured <= high; }
};

// What one optimizer step took, in seconds.
struct StepFact {
  double seconds = 0;  // all of it
  double data = 0;     // waiting for samples
  double compute = 0;
  double communication = 0;  // not hidden behind computing
  int64_t samples = 0;
};

// The facts of one session beside what its plan promised. The first steps choose kernels and grow memory: the plan is
// about warm steps, so they do not count; nor do those that `profiled`. A smaller last batch of an epoch counts for
// samples per second only. Of a job with phases each one's steps are held to its own promise.
class Facts {
 public:
  static constexpr int64_t kWarmUp = 5;        // steps that do not count
  static constexpr int64_t kFirstTable = 20;   // step of this session after which the first table is due
  static constexpr int64_t kProfileFrom = 10;  // steps of the session in which operators are timed
  static constexpr int64_t kProfileTo = 12;

  Facts(Promise promise, int64_t global_batch);

  void phase(size_t index);  // the steps that follow are of that one; without it, of the first
  void step(const StepFact& fact);
  void features(double seconds);  // until a cache of the phase was filled
  void started(double seconds) {
    start_up_ = seconds;
  }  // until the first step's end, a step's promised length left out
  void saved(double seconds);
  void epoch(double seconds);  // a whole one: steps, evaluation, save
  void total(double seconds) { total_ = seconds; }
  void memory(double bytes) { memory_ = bytes; }
  void profiled(std::map<std::string, double> by_class) { by_class_ = std::move(by_class); }  // seconds of one step

  int64_t steps() const { return steps_; }
  bool profiling() const { return steps_ >= kProfileFrom && steps_ < kProfileTo; }  // the next step
  const Promise& promise() const { return promise_; }
  std::optional<double> promised_step() const;    // of the phase that runs
  std::optional<double> promised_memory() const;  // of the phases so far
  std::vector<Comparison> compare() const;        // what is both promised and measured
  // In words, why the step or the rate is not inside its interval; empty when both are.
  std::vector<std::string> explain() const;

 private:
  struct PhaseFacts {
    int64_t steps = 0, full_steps = 0, samples = 0;
    double full_seconds = 0, full_communication = 0, data = 0, seconds = 0, features = 0;

    double step_mean() const;
  };
  void add_steps(std::vector<Comparison>& rows) const;
  const PhaseFacts& now() const { return phases_[phase_]; }

  Promise promise_;
  int64_t global_batch_;
  std::vector<PhaseFacts> phases_;  // one where the job has none
  size_t phase_ = 0;
  int64_t steps_ = 0, saves_ = 0, epochs_ = 0;
  double save_seconds_ = 0, epoch_seconds_ = 0;
  std::optional<double> start_up_, total_, memory_;
  std::map<std::string, double> by_class_;
};

std::string to_text(const std::vector<Comparison>& rows);
base::Json to_json(const std::vector<Comparison>& rows);

}  // namespace lockstep::training
