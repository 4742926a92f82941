// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/quiet_thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "lockstep/base/thread.h"

namespace lockstep::loader {

void settle_quiet_thread(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
  const sched_param parameters{};
  pthread_setschedparam(pthread_self(), SCHED_BATCH, &parameters);
  // Linux has a nice value for each thread, under the process's number for it. Never less than the process has: root's
  // jobs under `nice -n 15` would load at 5.
  const auto thread = static_cast<id_t>(syscall(SYS_gettid));
  setpriority(PRIO_PROCESS, thread, std::max(5, getpriority(PRIO_PROCESS, thread)));
  base::leave_signals_to_others();
}

bool leave_cores_free(int64_t num_cores) {
  cpu_set_t mine;
  if (num_cores <= 0 || sched_getaffinity(0, sizeof mine, &mine) != 0) return false;
  if (CPU_COUNT(&mine) < 3 * num_cores) return false;
  for (int core = 0; core < CPU_SETSIZE && num_cores > 0; ++core) {
    if (!CPU_ISSET(core, &mine)) continue;
    CPU_CLR(core, &mine);
    --num_cores;
  }
  return sched_setaffinity(0, sizeof mine, &mine) == 0;
}

}  // namespace lockstep::loader
