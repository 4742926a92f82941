// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/thread.h"

#include <pthread.h>

#include <csignal>

namespace lockstep::base {

void leave_signals_to_others() {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace lockstep::base
