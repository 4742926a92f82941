// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/pbs_start.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <map>

#include "lockstep/base/text.h"
#include "lockstep/site/command.h"
#include "lockstep/site/pbs_answer.h"

namespace lockstep::site {
namespace {

using base::text;

// What nobody has of a host, over its vnodes.
struct FreeHost {
  int64_t cores = 0;
  int64_t gpus = 0;
  int64_t memory = 0;
  bool has_jobs = false;
};

int64_t left_of(const PbsEntry& vnode, const std::string& resource) {
  const auto amount = [&](const char* kind) { return std::atoll(vnode.value(text(kind, resource)).c_str()); };
  return amount("resources_available.") - amount("resources_assigned.");
}

std::map<std::string, FreeHost> free_hosts(const std::string& queue, const std::vector<PbsEntry>& vnodes) {
  std::map<std::string, FreeHost> tied, shared;
  for (const auto& vnode : vnodes) {
    const std::string own = vnode.value("queue");
    if (vnode.value("state") != "free" || (!own.empty() && own != queue)) continue;
    const std::string host = vnode.value("resources_available.host");
    FreeHost& sum = (own.empty() ? shared : tied)[host.empty() ? vnode.name : host];
    sum.cores += left_of(vnode, "ncpus");
    sum.gpus += left_of(vnode, "ngpus");
    sum.memory += pbs_bytes(vnode.value("resources_available.mem")).value_or(0) -
                  pbs_bytes(vnode.value("resources_assigned.mem")).value_or(0);
    sum.has_jobs = sum.has_jobs || !vnode.value("jobs").empty();
  }
  return tied.empty() ? shared : tied;
}

// 1 of "Transit:0 Queued:1 Held:2 ..."
int64_t jobs_waiting(const PbsEntry& queue) {
  for (const auto& word : base::split(queue.value("state_count"), ' ')) {
    if (word.starts_with("Queued:")) return std::atoll(word.c_str() + 7);
  }
  return 0;
}

}  // namespace

Prospect forecast_pbs_start(const PbsNeeds& needs, std::string_view queues, std::string_view server,
                            std::string_view nodes, int64_t now) {
  const auto servers = parse_pbs(server);
  std::string name = needs.queue;
  if (name.empty() && !servers.empty()) name = servers.front().value("default_queue");
  const auto all = parse_pbs(queues);
  const auto queue = std::find_if(all.begin(), all.end(), [&](const PbsEntry& entry) { return entry.name == name; });
  if (queue == all.end()) return {std::nullopt, "PBS does not tell of its queues (qstat -Qf)"};
  if (queue->value("started") == "False") return {std::nullopt, text("queue ", name, " is stopped")};
  if (const int64_t waiting = jobs_waiting(*queue); waiting > 0) {
    return {std::nullopt, text(waiting, waiting == 1 ? " job waits" : " jobs wait", " in queue ", name,
                               ", and PBS forecasts a start for jobs in its queue alone")};
  }
  int64_t good = 0;
  for (const auto& [host, left] : free_hosts(name, parse_pbs(nodes))) {
    const bool takes = left.cores >= needs.cores && left.gpus >= needs.gpus && left.memory >= needs.memory;
    good += takes && !(needs.whole_nodes && left.has_jobs) ? 1 : 0;
  }
  if (good >= needs.nodes) return {now, ""};
  return {std::nullopt, text(good, good == 1 ? " node is" : " nodes are",
                             " free for it now, and PBS forecasts a start for jobs in its queue alone")};
}

Prospect ask_pbs_start(const PbsNeeds& needs) {
  const auto said = [](const std::vector<std::string>& words) {
    return run_for_output(words, std::chrono::milliseconds(20000)).value_or("");
  };
  return forecast_pbs_start(needs, said({"qstat", "-Qf"}), said({"qstat", "-Bf"}), said({"pbsnodes", "-av"}),
                            static_cast<int64_t>(std::time(nullptr)));
}

}  // namespace lockstep::site
