// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/arguments.h"
#include "lockstep/comm/group.h"
#include "lockstep/run/pulse.h"

// For verbs that work on many ranks and keep nothing that a stop could lose.
namespace lockstep::ranks {

// With --ranks N, outside of a launcher: starts the command N times, watches over the ranks and returns their exit code
// (128 + the signal after Ctrl-C or SIGTERM). A rank that dies, is stopped or hangs ends all of them: machine error
// with its number, its host and what it was doing. Otherwise nothing: this process is a rank, or alone. The first
// positional argument is the run: the ranks' beats lie there while they work, where it can be written.
std::optional<int> start_ranks(const char* verb, const base::Arguments& arguments,
                               const std::vector<std::string>& words);

// Runs `body` as one of the group's ranks; it tells the activity how it gets on. An error ends all of them, and is told
// once where all have it.
int run_as_rank(comm::Group& group, const std::function<int(run::Activity&)>& body);

}  // namespace lockstep::ranks
