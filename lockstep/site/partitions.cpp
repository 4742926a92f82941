// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/partitions.h"

#include <cstdlib>
#include <map>

#include "lockstep/base/text.h"
#include "lockstep/site/command.h"
#include "lockstep/site/pbs_answer.h"

namespace lockstep::site {
namespace {

// "gpu:a100:4(S:0-1),tmpdisk:100" -> 4 of type a100; "gpu:2" -> 2 without a type.
void read_gres(std::string_view gres, Partition& partition) {
  for (const auto& item : base::split(gres, ',')) {
    const auto words = base::split(std::string_view(item).substr(0, item.find('(')), ':');
    if (words.size() < 2 || words[0] != "gpu") continue;
    partition.gpus += std::atoll(words.back().c_str());
    if (words.size() > 2) partition.gpu_type = words[1];
  }
}

struct PbsHost {
  int64_t cpus = 0;
  int64_t memory_mib = 0;
  int64_t gpus = 0;
  auto operator<=>(const PbsHost&) const = default;  // NOLINT(modernize-use-nullptr): of clang-tidy 14
};

int64_t number_at(const PbsEntry& entry, const std::string& key) {
  return std::atoll(entry.value(key).c_str());
}

// How many hosts of each size a queue has: nodes that are tied to a queue serve it alone.
std::map<PbsHost, int64_t> hosts_of(const std::string& queue, const std::vector<PbsEntry>& vnodes) {
  std::map<std::string, PbsHost> tied, shared;
  for (const auto& vnode : vnodes) {
    const std::string own = vnode.value("queue");
    if (!own.empty() && own != queue) continue;
    const std::string host = vnode.value("resources_available.host");
    PbsHost& sum = (own.empty() ? shared : tied)[host.empty() ? vnode.name : host];
    sum.cpus += number_at(vnode, "resources_available.ncpus");
    sum.memory_mib += pbs_bytes(vnode.value("resources_available.mem")).value_or(0) >> 20;
    sum.gpus += number_at(vnode, "resources_available.ngpus");
  }
  std::map<PbsHost, int64_t> kinds;
  for (const auto& [name, host] : tied.empty() ? shared : tied) ++kinds[host];
  return kinds;
}

}  // namespace

std::vector<Partition> parse_pbs_queues(std::string_view queues, std::string_view server, std::string_view nodes) {
  const auto servers = parse_pbs(server);
  const PbsEntry all_jobs = servers.empty() ? PbsEntry{} : servers.front();
  const auto vnodes = parse_pbs(nodes);
  std::vector<Partition> all;
  for (const auto& queue : parse_pbs(queues)) {
    Partition partition;
    partition.name = queue.name;
    partition.is_default = queue.name == all_jobs.value("default_queue");
    partition.enabled = queue.value("enabled") != "False";
    partition.started = queue.value("started") != "False";
    std::string limit = queue.value("resources_max.walltime");
    if (limit.empty()) limit = all_jobs.value("resources_max.walltime");
    if (const auto seconds = left_by_squeue(limit); seconds && !limit.empty()) {
      partition.limit_seconds = seconds->count();
    }
    const auto kinds = hosts_of(queue.name, vnodes);
    if (kinds.empty()) all.push_back(partition);
    for (const auto& [host, count] : kinds) {
      partition.nodes = count;
      partition.cpus = host.cpus;
      partition.memory_mib = host.memory_mib;
      partition.gpus = host.gpus;
      all.push_back(partition);
    }
  }
  return all;
}

std::vector<Partition> parse_sinfo(std::string_view answer) {
  std::vector<Partition> all;
  for (const auto& line : base::split(answer, '\n')) {
    const auto words = base::split(base::trim(line), '|');
    if (words.size() != 6 || words[0].empty()) continue;
    Partition partition;
    partition.name = words[0];
    if (partition.name.back() == '*') {
      partition.is_default = true;
      partition.name.pop_back();
    }
    if (const auto limit = left_by_squeue(words[1])) partition.limit_seconds = limit->count();
    // "128+" where nodes differ: the least of them.
    partition.nodes = std::atoll(words[2].c_str());
    partition.cpus = std::atoll(words[3].c_str());
    partition.memory_mib = std::atoll(words[4].c_str());
    read_gres(words[5], partition);
    all.push_back(std::move(partition));
  }
  return all;
}

std::vector<Partition> read_partitions(SchedulerName scheduler) {
  const auto said = [](const std::vector<std::string>& words) {
    return run_for_output(words, std::chrono::milliseconds(3000)).value_or("");
  };
  const bool slurm = find_on_path("sinfo").has_value();
  if (scheduler == SchedulerName::slurm && slurm) return parse_sinfo(said({"sinfo", "-h", "-o", "%P|%l|%D|%c|%m|%G"}));
  if (scheduler != SchedulerName::pbs || slurm || !find_on_path("qstat")) return {};
  const std::string nodes = find_on_path("pbsnodes") ? said({"pbsnodes", "-av"}) : "";
  return parse_pbs_queues(said({"qstat", "-Qf"}), said({"qstat", "-Bf"}), nodes);
}

}  // namespace lockstep::site
