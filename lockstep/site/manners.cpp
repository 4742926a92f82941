// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/manners.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/site/command.h"
#include "lockstep/site/cores.h"
#include "lockstep/site/scheduler.h"

namespace lockstep::site {

bool is_login_node() {
  return read_scheduler().login_node();
}

int64_t threads_allowed(int64_t cores) {
  return is_login_node() ? std::min(cores, kLoginThreads) : cores;
}

namespace {

// Binds this process to so many of its cores, from the one it runs on: whatever asks for threads later, no more run.
void keep_to_cores(int64_t most) {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  cpu_set_t kept;
  CPU_ZERO(&kept);
  const int here = std::max(0, ::sched_getcpu());
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&kept) < most; ++i) {
    const int core = (here + i) % CPU_SETSIZE;
    if (CPU_ISSET(core, &allowed)) CPU_SET(core, &kept);
  }
  (void)::sched_setaffinity(0, sizeof kept, &kept);  // refused: the thread count below still holds
}

}  // namespace

int64_t behave_on_login_node() {
  const int64_t cores = usable_cores();
  if (!is_login_node()) return cores;
  // A refusal of setpriority (already nicer, or a container's rule) costs nothing but manners.
  (void)::setpriority(PRIO_PROCESS, 0, kLoginNice);
  const int64_t threads = std::min(cores, kLoginThreads);
  keep_to_cores(threads);
  ::setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), 1);
  return threads;
}

void forget_manners() {
  std::string began;
  try {
    began = base::read_file("/proc/self/environ");
  } catch (const base::Error&) {
    return;  // no /proc: what was set stays
  }
  for (const std::string name : {"OMP_NUM_THREADS", "OMP_WAIT_POLICY"}) {
    ::unsetenv(name.c_str());
    for (const auto& entry : base::split(began, '\0')) {
      if (entry.starts_with(name + "=")) ::setenv(name.c_str(), entry.c_str() + name.size() + 1, 1);
    }
  }
}

void refuse_on_login_node(std::string_view verb, const std::vector<std::string>& words, bool here,
                          std::chrono::seconds walltime) {
  const Scheduler scheduler = read_scheduler();
  if (!scheduler.login_node()) return;
  if (here) {
    behave_on_login_node();
    return;
  }
  throw base::Error(
      base::Blame::user,
      base::text("this is a login node (", name_of(scheduler.name),
                 " commands, no allocation) and others share it: `lockstep ", verb, "` belongs on a compute node"),
      base::text(submit_line(scheduler.name, verb, shell_words(words), walltime),
                 "\n       (--here runs it on this node after all, with 2 threads at nice 19)"));
}

}  // namespace lockstep::site
