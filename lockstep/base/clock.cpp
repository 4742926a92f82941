// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/clock.h"

#include <ctime>

namespace lockstep::base {
namespace {

double read_clock(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

double steady_seconds() {
  return read_clock(CLOCK_MONOTONIC);
}

double unix_seconds() {
  return read_clock(CLOCK_REALTIME);
}

double process_processor_seconds() {
  return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

double thread_processor_seconds() {
  return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

}  // namespace lockstep::base
