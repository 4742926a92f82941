// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "lockstep/base/arguments.h"
#include "lockstep/base/file.h"
#include "lockstep/comm/group.h"
#include "lockstep/run/pulse.h"

// The life of the processes of a verb whose work ranks share. There is one way, whoever starts them: alone, under a
// site's mpirun or srun, or by our own supervisor.
namespace lockstep::ranks {

// Of --ranks N, 1 without it. User error below 1.
int64_t ranks_asked(const base::Arguments& arguments);

struct RankedVerb {
  int64_t ranks = 1;           // asked for
  base::Path run = {};         // where the heartbeats of a watched rank go, unless its environment names a folder
  std::function<int()> watch;  // starts the ranks and watches over them; their exit code
  std::function<int()> work;   // as one rank, or alone; the exit code
};

// What this process is to do of it: to watch when it is asked for several ranks and no launcher has started it, else to
// work. A rank that is watched splits off its watchdog first, and does not return: it exits with the code of its work.
int run_on_ranks(const RankedVerb& verb);

// One rank at work.
struct Rank {
  comm::Group& group;
  std::shared_ptr<run::Activity> activity;  // to be told how the work gets on
  bool watched = false;                     // by a supervisor, which may have left some ranks out
};

// Joins the group and does the work, with heartbeats for whoever watches; heartbeats begin before the group is joined.
// An error ends all ranks, told once where all have it; of a rank alone it is thrown, in our own words.
int work_as_rank(const base::Path& run, const std::function<std::unique_ptr<comm::Group>()>& join,
                 const std::function<int(const Rank&)>& work);

}  // namespace lockstep::ranks
