// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lockstep::verbs {

// The mpirun line that starts this program `ranks` times with the same words, without --ranks itself.
std::vector<std::string> mpirun_line(const std::string& program, const std::string& verb,
                                     const std::vector<std::string>& words, int64_t ranks, bool as_root);

// Runs it and returns its exit code. SIGINT and SIGTERM of this process reach the ranks as SIGUSR1, which mpirun passes
// on; a plain Ctrl-C would make mpirun kill them before they can save. A second Ctrl-C does make it so. Machine error
// when mpirun is not there.
int run_ranks(const std::vector<std::string>& line);

}  // namespace lockstep::verbs
