// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/arguments.h"
#include "lockstep/comm/group.h"

// For verbs that work on many ranks and keep nothing that a stop could lose.
namespace lockstep::verbs {

// With --ranks N, outside of a launcher: starts the command N times with mpirun and returns its exit code. Otherwise
// nothing: this process is a rank, or alone.
std::optional<int> start_ranks(const char* verb, const base::Arguments& arguments,
                               const std::vector<std::string>& words);

// Runs `body` as one of the group's ranks. An error ends all of them, and is told once where all have it.
int run_as_rank(comm::Group& group, const std::function<int()>& body);

}  // namespace lockstep::verbs
