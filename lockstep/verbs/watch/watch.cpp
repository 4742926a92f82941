// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/watch/watch.h"

#include <algorithm>

#include "lockstep/base/clock.h"

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

}  // namespace lockstep::verbs::watch
