// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/watch/watch.h"

#include <algorithm>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::verbs::watch {

std::vector<watching::Snapshot> look_at(std::vector<watching::RunWatch>& runs) {
  std::vector<watching::Snapshot> all;
  all.reserve(runs.size());
  for (auto& run : runs) {
    run.poll();
    all.push_back(run.look(base::unix_seconds()));
  }
  return all;
}

int follow_runs(std::vector<watching::RunWatch>& runs, const Show& show, const Pause& pause) {
  constexpr int kInterrupted = 130;
  while (true) {
    const auto all = look_at(runs);
    show(all);
    const bool over = std::all_of(all.begin(), all.end(), [](const auto& one) { return is_over(one.status); });
    if (over) {
      int code = 0;
      for (const auto& one : all) {  // broken off counts more than stopped in order
        const int its = watching::exit_code(one.status);
        if (code == 0 || (its != 0 && its < code)) code = its;
      }
      return code;
    }
    if (!pause()) return kInterrupted;
  }
}

Fetching::Fetching(std::vector<std::string> runs, Fetch fetch, Say say)
    : runs_(std::move(runs)), fetch_(std::move(fetch)), say_(std::move(say)) {}

void Fetching::fetch_all() {
  for (const auto& run : runs_) {
    try {
      fetch_(run);
      if (troubles_.erase(run) > 0) say_(base::text(run, ": fetched again"));
    } catch (const base::Error& error) {
      if (error.blame() != base::Blame::machine) throw;
      if (troubles_[run] == error.what()) continue;
      troubles_[run] = error.what();
      say_(base::text(run, ": ", error.what(), "; tried again at each look"));
    }
  }
}

}  // namespace lockstep::verbs::watch
