// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "lockstep/watching/run_watch.h"

namespace lockstep::verbs::watch {

// How it goes on: waits a while; false: somebody asked to end.
using Pause = std::function<bool()>;
using Show = std::function<void(const std::vector<watching::Snapshot>&)>;

// Shows the runs, again after each pause, until all of them are over. The exit code is that of the run that went worst;
// 130 when somebody ended it. A run whose folder disappears is over. Errors as RunWatch::poll.
int follow_runs(std::vector<watching::RunWatch>& runs, const Show& show, const Pause& pause);

std::vector<watching::Snapshot> look_at(std::vector<watching::RunWatch>& runs);

}  // namespace lockstep::verbs::watch
