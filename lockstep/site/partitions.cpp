// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/partitions.h"

#include <cstdlib>

#include "lockstep/base/text.h"
#include "lockstep/site/command.h"
#include "lockstep/site/scheduler.h"

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

}  // namespace

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

std::vector<Partition> read_partitions() {
  if (!find_on_path("sinfo")) return {};
  const auto answer = run_for_output({"sinfo", "-h", "-o", "%P|%l|%D|%c|%m|%G"}, std::chrono::milliseconds(3000));
  return parse_sinfo(answer.value_or(""));
}

}  // namespace lockstep::site
