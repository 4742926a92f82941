// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/thread.h"

#include <pthread.h>

#include <csignal>
#include <initializer_list>

namespace lockstep::base {

void leave_signals_to_others() {
  sigset_t all;
  sigfillset(&all);
  // A fault is its own thread's; blocked, it would end the process without the handler that names its cause.
  for (const int signal : {SIGBUS, SIGSEGV, SIGFPE, SIGILL}) sigdelset(&all, signal);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace lockstep::base
