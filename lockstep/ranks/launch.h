// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "lockstep/site/hosts.h"
#include "lockstep/site/scheduler.h"

namespace lockstep::ranks {

// Runs the line of a launcher and returns its exit code. SIGINT and SIGTERM of this process reach the ranks as SIGUSR1,
// which mpirun passes on; a plain Ctrl-C would make mpirun kill them before they can save. A second Ctrl-C does make it
// so. Machine error when mpirun is not there.
int run_ranks(const std::vector<std::string>& line);

// NCCL wants a GPU for each rank: a user error, before anything is started, when a host of the allocation would get
// more ranks than `gpus`, of which this host has so many. No hosts: this one alone.
void check_gpus(int64_t ranks, int64_t hosts, int64_t gpus);

enum class Launcher { open_mpi, mpich, srun, own };

// What starts ranks here: mpirun (which knows the scheduler's nodes), else srun inside an allocation of Slurm, else for
// ranks on GPUs, which need no MPI, this program itself, on this host. Machine error when there is none of them.
enum class Meet { by_mpi, on_gpus };
Launcher find_launcher(const site::Scheduler& scheduler, Meet meet = Meet::by_mpi);

// The line that starts `command` once per rank: on these hosts, or without any on this one. Ranks on other hosts get
// what site::pass_words() says of this environment.
std::vector<std::string> launch_line(Launcher launcher, const std::vector<site::Share>& hosts, int64_t ranks,
                                     const std::vector<std::string>& command);

// Starts it in a process group of its own, without standard input. mpirun would answer SIGTERM, SIGHUP and
// SIGXCPU by killing the ranks within 2 s: they are blocked for it, and asked_to_stop() tells which came. `ranks`: for
// the own launcher, whose line has no number. That one goes on in the forked process without an exec: other threads may
// run here, as long as they hold no lock that the own launcher takes (RunFolder's, which renews a time stamp, does
// not). Whatever goes wrong there is told on stderr and ends that process alone.
pid_t start_launcher(Launcher launcher, const std::vector<std::string>& line, int64_t ranks = 1);
int asked_to_stop(pid_t launcher);  // 0: none

}  // namespace lockstep::ranks
