// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace lockstep::run {

// What one save was measured to cost, in seconds.
struct SaveCost {
  double stall = 0;      // the step loop stood still: waiting for an earlier save, copying the state
  double processor = 0;  // of the thread that wrote: on a machine without spare cores, taken from training
  double durable = 0;    // from the copy until all of it was on the disk
};

// Seconds between two saves by Young's rule, sqrt(2 * cost * mean time between failures): less often loses more work
// to a failure, more often costs more than it protects. At most 2 % of that mean time, so that a failure costs 1 % of
// the time on the average; but never so short that the stalls exceed 1 %, or that a save meets the one before it.
double young_interval(const SaveCost& cost, double mean_time_between_failures);

// Says when the next save is due. Times are of one steady clock, in seconds. Only rank 0 has one: the ranks meet at
// agreed steps ("looks") to hear from it, some 16 times an interval, instead of a message in every step.
class SaveClock {
 public:
  SaveClock(double mean_time_between_failures, double now);

  void began(double now) { last_ = now; }  // the state of now is being saved
  void measured(const SaveCost& cost) { cost_ = cost; }
  double interval() const;  // a minute until a save was measured

  struct Look {
    bool save = false;      // after this step
    int64_t next_step = 0;  // when to look again
  };
  // After `step` steps that take `step_seconds` each.
  Look look(int64_t step, double now, double step_seconds) const;

 private:
  double failures_;
  double last_;
  std::optional<SaveCost> cost_;
};

}  // namespace lockstep::run
