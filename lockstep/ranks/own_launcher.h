// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::ranks {

// The launcher of ranks on the GPUs of this host, which meet through NCCL and need no mpirun. Starts `command` `ranks`
// times, each told its number, how many there are and the private folder in which they meet (LOCKSTEP_RANK,
// LOCKSTEP_SIZE, LOCKSTEP_RENDEZVOUS). SIGUSR1 and SIGTERM reach every rank as SIGUSR1, a wish to stop; SIGINT ends
// them all, as the first rank does that fails: SIGTERM, and SIGKILL 2 s later. Returns when all are gone: the code of
// the first rank that failed (128 + the signal that killed it), else 85 when one asked for it, else 0. Machine error
// when there is no folder to meet in. REQUIRES: a process of its own, in which only this thread runs: its signals are
// blocked and its children waited for.
int launch_ranks(const std::vector<std::string>& command, int64_t ranks);

}  // namespace lockstep::ranks
