// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/chain/chain.h"
#include "lockstep/site/batch.h"

namespace lockstep::chain {

// What a job of the chain does when its training has ended with `code`.
enum class Verdict { done, next, failed };
// 0: done. 2, 3, 4: a person must act. All else (85, a killed rank, a dead node) the next link goes on from.
Verdict verdict_of(int code);

struct LinkOptions {
  std::function<int(const std::vector<std::string>&)> run;  // the command; returns its exit code
  std::function<void(std::string_view)> say;
};

// One link of the chain, inside its job: queues its successor first (submit_from job), so that a kill at any moment
// leaves it queued, then runs the command, and at the end of the chain cancels what is still in the queue. A chain that
// is over, at its cap or without progress ends here without work. Returns the exit code of the job.
// User error outside an allocation.
int run_link(const base::Path& run, const std::vector<std::string>& command, const LinkOptions& options);

// The command; an mpirun, which stands in front of a container and is Open MPI's, with the words by which ranks on
// other nodes get the environment of this process that is meant for them. `lockstep train --ranks` adds them itself.
std::vector<std::string> with_environment(std::vector<std::string> command);

// Runs the command with this process's standard streams. SIGTERM, SIGUSR1, SIGHUP, SIGXCPU and SIGINT of this process
// are handed on to it, so that training can save; to an mpirun all but the last as SIGUSR1, which it passes on instead
// of killing the ranks. Returns its exit code, 128 + signal, 127 when it cannot be started, or 85 when a signal had
// come before.
int run_and_hand_on_signals(const std::vector<std::string>& command);

// Frees the run folder of a lock that a link of this chain took, whose job is over: the lock of a node that lost its
// power would otherwise hold for a minute. True when there was one. `alive`: the jobs of the chain that the scheduler
// still knows as waiting, running or ending.
bool free_dead_lock(const base::Path& run, const Chain& chain, const std::vector<site::BatchJob>& alive);

}  // namespace lockstep::chain
