// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/arguments.h"
#include "lockstep/comm/group.h"
#include "lockstep/ranks/rank_life.h"

// For verbs that work on many ranks and keep nothing that a stop could lose.
namespace lockstep::ranks {

// Does the work on as many ranks as --ranks says: see RankedVerb. Outside of a launcher this process starts them,
// watches over them and returns their exit code (128 + the signal after Ctrl-C or SIGTERM). A rank that dies, is
// stopped or hangs ends all of them: machine error with its number, its host and what it was doing. The first
// positional argument is the run: the ranks' heartbeats lie there while they work, where it can be written.
int share_over_ranks(const char* verb, const base::Arguments& arguments, const std::vector<std::string>& words,
                     const std::function<std::unique_ptr<comm::Group>()>& join,
                     const std::function<int(const Rank&)>& work);

}  // namespace lockstep::ranks
