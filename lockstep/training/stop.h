// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>

#include "lockstep/comm/group.h"
#include "lockstep/forecast/sessions.h"
#include "lockstep/training/train.h"

namespace lockstep::training {

// Why a session ends before its run does: some rank was asked to, or what is left of the walltime is needed to save.
// Its clock starts when it is made. Make it first: whoever gave the walltime counts the scan of the data too.
class Stop {
 public:
  Stop(const TrainOptions& options, comm::Group& group);  // both outlive it

  double started() const { return started_; }  // on the steady clock
  double elapsed() const;                      // seconds of this session

  // Why this rank wants to stop now: what it was asked for, or "walltime" when no more is left than must be kept.
  // Empty: it goes on.
  std::string wanted(const forecast::Keeping& keeping) const;
  bool has_time_for(double seconds) const;
  // Somebody asked for a stop a while ago: what this rank still waits for may never come. `now` is on the steady clock.
  // From any thread.
  bool is_overdue(double now) const;
  bool is_overdue_at_start(double now) const;  // likewise, before the first step: no other rank waits in one
  // Before the first step: a session that cannot save one step would be repeated for ever, which is a user error. After
  // a restart late in a job the next job has its whole time: then it is a stop for "walltime". Empty: there is enough.
  std::string check_start(const forecast::Keeping& keeping) const;

  // The reason of the first rank that wants to stop, on every rank. Every rank calls it; some rank has a reason.
  void agree(const std::string& mine);
  void follow(const std::string& of_rank_0);  // likewise that of rank 0, which may be empty

  bool is_set() const { return !reason_.empty(); }
  const std::string& reason() const { return reason_; }

 private:
  bool was_asked_before(double seconds, double now) const;

  double started_;
  const TrainOptions& options_;
  comm::Group& group_;
  std::string reason_;
  mutable std::atomic<double> asked_{0};  // on the steady clock, when it was first seen; 0: not yet
};

}  // namespace lockstep::training
