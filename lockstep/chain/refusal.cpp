// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/refusal.h"

#include <algorithm>
#include <vector>

#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/site/accounts.h"
#include "lockstep/site/command.h"
#include "lockstep/site/partitions.h"

namespace lockstep::chain {
namespace {

using base::Blame;
using base::Error;
using base::text;

struct Rule {
  const char* phrase;  // in the scheduler's words
  Blame blame;
  const char* fix;
};
// Slurm 22.05's words (slurm_errno.c) and OpenPBS 23.06's (pbs_error.h messages); the first that fits counts.
constexpr Rule kRules[] = {
    {"nvalid partition", Blame::user, "--site scheduler.partition=NAME; the partitions: sinfo -s"},
    {"Unknown queue", Blame::user, "--site scheduler.partition=QUEUE; the queues: qstat -Q"},
    {"nvalid account", Blame::user,
     "--site scheduler.account=NAME; yours: sacctmgr show assoc user=$USER format=account"},
    {"nvalid qos", Blame::user, "--site scheduler.qos=NAME; yours: sacctmgr show assoc user=$USER format=account,qos"},
    {"nvalid feature", Blame::user, "--site scheduler.constraint=NAME; features: sinfo -o '%P %f'"},
    {"reservation is invalid", Blame::user, "--site scheduler.reservation=NAME; yours: scontrol show reservation"},
    {"nvalid generic resource", Blame::user,
     "--site scheduler.resources=gres|gpus_per_node and scheduler.gpu_type; GPUs: sinfo -o '%P %G'"},
    {"time limit", Blame::user, "a shorter --walltime: the chain needs more links then"},
    {"node configuration is not available", Blame::user,
     "fewer --nodes or --ranks-per-node, or what the site calls its GPUs (scheduler.gpu_type): sinfo -o '%P %D %c "
     "%G'"},
    {"ode count specification", Blame::user, "fewer --nodes"},
    {"QOSMax", Blame::user, "fewer --nodes or a shorter --walltime: limits of the QOS: sacctmgr show qos"},
    {"ccess/permission denied", Blame::user, "ask the site for access to this partition, or name another"},
    {"violates queue", Blame::user, "fewer --nodes or a shorter --walltime: limits of the queue: qstat -Qf QUEUE"},
    {"Bad UID", Blame::user, "PBS takes no jobs from root: submit as yourself"},
    {"llegal attribute or resource", Blame::user, "--site scheduler.resources=select|nodes, as the site's guide says"},
    {"Unable to contact", Blame::machine, "the controller does not answer: scontrol ping, or try again later"},
    {"cannot connect to server", Blame::machine, "the server does not answer: qstat -B, or try again later"},
    {"did not answer", Blame::machine, "the scheduler is busy: try again later"},
};

// One account missing is what sites refuse most: name those that there are.
std::string known_accounts() {
  std::vector<std::string> names;
  for (const auto& account : site::read_accounts()) names.push_back(account.name);
  return names.empty() ? "" : text("; you may charge ", base::join(names, ", "));
}

}  // namespace

std::string in_one_line(const std::string& words) {
  std::string all;
  for (const auto& line : base::split(words, '\n')) {
    if (!base::trim(line).empty()) all += (all.empty() ? "" : "; ") + std::string(base::trim(line));
  }
  return all;
}

Error refusal_error(const std::string& words, const spec::Scheduler& scheduler) {
  const std::string what = text(name_of(scheduler.kind), " refused the job: ", in_one_line(words));
  for (const auto& rule : kRules) {
    if (words.find(rule.phrase) == std::string::npos) continue;
    const bool about_account = std::string_view(rule.phrase) == "nvalid account";
    return {rule.blame, what, text(rule.fix, about_account ? known_accounts() : "")};
  }
  return {Blame::machine, what, "look at the script with --dry-run; what the site wants goes into scheduler.extra"};
}

void check_site(const spec::Machine& machine, int64_t nodes, double walltime) {
  const spec::Scheduler& scheduler = machine.scheduler;
  const bool slurm = scheduler.kind == spec::SchedulerKind::slurm;
  if (!site::find_on_path(slurm ? "sbatch" : "qsub")) {
    throw Error(Blame::machine,
                text(machine.name, " uses ", name_of(scheduler.kind), ", but ", slurm ? "sbatch" : "qsub",
                     " is not on PATH: this is not its login node"),
                "log in there, or see the script with --dry-run");
  }
  const auto partitions = slurm ? site::read_partitions() : std::vector<site::Partition>{};
  if (partitions.empty()) return;
  std::vector<std::string> names;
  int64_t most_nodes = 0;
  std::optional<int64_t> limit = 0;  // the longest of the rows; nothing: none
  for (const auto& partition : partitions) {
    names.push_back(partition.name);
    const bool asked = scheduler.partition.empty() ? partition.is_default : partition.name == scheduler.partition;
    if (!asked) continue;
    most_nodes += partition.nodes;
    limit = limit && partition.limit_seconds ? std::optional(std::max(*limit, *partition.limit_seconds)) : std::nullopt;
  }
  if (most_nodes == 0) {
    if (scheduler.partition.empty()) return;  // no default: the site may choose by other means
    throw Error(Blame::user, text(machine.name, " has no partition '", scheduler.partition, "'"),
                text("--site scheduler.partition=NAME: ", base::did_you_mean(scheduler.partition, names)));
  }
  const std::string where = text("partition ", scheduler.partition.empty() ? "(default)" : scheduler.partition);
  if (limit && walltime > static_cast<double>(*limit)) {
    throw Error(Blame::user,
                text(where, " lets a job run for ", base::exact_duration(static_cast<double>(*limit)), ", not for ",
                     base::exact_duration(walltime)),
                text("--walltime ", base::exact_duration(static_cast<double>(*limit)), ", or another partition"));
  }
  if (nodes > most_nodes) {
    throw Error(Blame::user, text(where, " has ", most_nodes, " nodes, not ", nodes), text("--nodes ", most_nodes));
  }
}

}  // namespace lockstep::chain
