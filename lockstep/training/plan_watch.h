// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "lockstep/training/facts.h"
#include "lockstep/training/ledger.h"
#include "lockstep/training/profile.h"
#include "lockstep/training/train.h"

namespace lockstep::training {

// Holds a run to its plan: gathers the facts of this session, and tells and journals promise against fact after the
// warm-up and at the end. Rank 0 only.
class PlanWatch {
 public:
  // User error when the plan in `options` is not one of this job, on this machine, with so many ranks.
  PlanWatch(const spec::Job& job, const TrainOptions& options, int64_t ranks, Ledger& ledger);

  void phase(size_t index) { facts_.phase(index); }
  void features(double seconds);  // a cache of the phase is filled
  void before_step(bool begins_epoch);
  void step(int64_t step, const StepFact& fact);  // of the run: 1 = the first
  void saved(double seconds) { facts_.saved(seconds); }
  void end_epoch();
  // `total_seconds` of all sessions, each from where it began to train; none: the run goes on in another session. What
  // came before that counts too, of each of the `sessions` as of this one.
  void end(int64_t step, std::optional<double> total_seconds, int64_t sessions = 1);

 private:
  void begin(double first_step);
  void tell(int64_t step, const char* when);

  Ledger& ledger_;
  at::Device device_;
  Facts facts_;
  std::unique_ptr<OperatorProfile> profile_;  // while it runs
  double epoch_start_ = 0;                    // 0: this session was not there
  double features_ = 0;                       // seconds until caches were filled, before the first step
  double before_ = 0;                         // seconds of this process before it trained
  double start_up_left_ = 0;                  // of the first step's seconds: kernels are loaded and chosen
};

// Since this process was started.
double process_seconds();

// The most memory this process has had: on a GPU what libtorch's allocator reserved, else its resident set.
double peak_memory(at::Device device);

}  // namespace lockstep::training
