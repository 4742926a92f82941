// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
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

// Runs elsewhere, as they are brought here between two looks. A network that fails is no end of watching: each trouble
// is told once, until it is over, and the next look tries again. What the user must act on is thrown.
class Fetching {
 public:
  using Fetch = std::function<void(const std::string& run)>;
  using Say = std::function<void(const std::string& line)>;
  Fetching(std::vector<std::string> runs, Fetch fetch, Say say);

  void fetch_all();
  // Of what failed the last time, by run.
  const std::map<std::string, std::string>& troubles() const { return troubles_; }

 private:
  std::vector<std::string> runs_;
  Fetch fetch_;
  Say say_;
  std::map<std::string, std::string> troubles_;
};

}  // namespace lockstep::verbs::watch
