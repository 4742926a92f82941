// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/rank_life.h"

#include <unistd.h>

#include <cstdio>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/ranks/rank_error.h"
#include "lockstep/ranks/watchdog.h"
#include "lockstep/ranks/worker_slot.h"
#include "lockstep/site/last_words.h"

namespace lockstep::ranks {

int64_t ranks_asked(const base::Arguments& arguments) {
  const int64_t ranks = arguments.int_or("--ranks", 1);
  if (ranks < 1) throw base::Error(base::Blame::user, base::text("--ranks ", ranks), "give 1 or more");
  return ranks;
}

int run_on_ranks(const RankedVerb& verb) {
  if (const auto slot = my_worker_slot(verb.run)) {
    const auto kept = watch_rank(*slot);
    const int code = kept ? *kept : verb.work();
    // All is written and MPI is ended. Taking the libraries apart costs half a second of processor time in each of
    // these processes, during which a rank would be silent.
    std::fflush(nullptr);
    ::_exit(code);
  }
  return verb.ranks > 1 && !comm::launched_by_mpi() ? verb.watch() : verb.work();
}

int work_as_rank(const base::Path& run, const std::function<std::unique_ptr<comm::Group>()>& join,
                 const std::function<int(const Rank&)>& work) {
  const auto activity = std::make_shared<run::Activity>();
  std::unique_ptr<run::Pulse> pulse;
  if (const auto slot = my_worker_slot(run)) {
    pulse = std::make_unique<run::Pulse>(slot->heartbeat, slot->world, slot->rank, *activity);
  }
  std::unique_ptr<comm::Group> group;
  std::optional<CallsWatched> watched;
  try {
    group = join();
    watched.emplace(*activity, *group);
    const int code = work({*group, activity, pulse != nullptr});
    activity->enter(run::Phase::ending);
    return code;
  } catch (const std::exception& thrown) {
    // Also what libtorch throws before there is a group: a GPU without memory.
    const base::Error error = rank_error(thrown);
    if (group && group->size() > 1) {
      site::tell_last_words(error, group->rank());
      if (pulse) pulse->write_now();
      group->abort(error.exit_code());  // leaving in good order would wait for ranks that may never come
    }
    throw error;
  }
}

}  // namespace lockstep::ranks
