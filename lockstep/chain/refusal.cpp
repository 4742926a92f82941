// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/refusal.h"

#include <algorithm>
#include <vector>

#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/site/accounts.h"
#include "lockstep/site/command.h"

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
    {"emory specification can not be satisfied", Blame::user,
     "--site scheduler.memory=BYTES, what a node has (sinfo -o '%P %m', in MiB), or fewer --ranks-per-node"},
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
    {"Queue is not enabled", Blame::user,
     "--site scheduler.partition=QUEUE, one that takes jobs: qstat -Q shows them (Ena yes)"},
    {"Unknown resource", Blame::user,
     "the site does not know what the script asks for: scheduler.gpu_type (gpu_type), scheduler.constraint and "
     "scheduler.extra are yours, the rest is scheduler.resources=select|nodes|job_wide; its guide says which it wants"},
    {"cannot be used with \"select\"", Blame::user,
     "scheduler.extra asks for a resource of the whole job: write it into scheduler.constraint (of each node), or "
     "--site scheduler.resources=job_wide"},
    {"Unauthorized Request", Blame::user, "ask the site for access to this queue, or name another: qstat -Q"},
    {"Bad UID", Blame::user, "PBS takes no jobs from root: submit as yourself"},
    {"llegal attribute or resource", Blame::user,
     "--site scheduler.resources=select|nodes|job_wide, as the site's guide says"},
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

void check_commands(const spec::Machine& machine) {
  const bool slurm = machine.scheduler.kind == spec::SchedulerKind::slurm;
  if (site::find_on_path(slurm ? "sbatch" : "qsub")) return;
  throw Error(Blame::machine,
              text(machine.name, " uses ", name_of(machine.scheduler.kind), ", but ", slurm ? "sbatch" : "qsub",
                   " is not on PATH: this is not its login node"),
              "log in there, or see the script with --dry-run");
}

namespace {

// The rows of the partition that is asked for; all of them where the default is not known.
std::vector<site::Partition> asked_rows(const spec::Machine& machine, const std::vector<site::Partition>& partitions) {
  const std::string& wanted = machine.scheduler.partition;
  std::vector<site::Partition> rows;
  std::vector<std::string> names;
  for (const auto& partition : partitions) {
    names.push_back(partition.name);
    if (wanted.empty() ? partition.is_default : partition.name == wanted) rows.push_back(partition);
  }
  if (!rows.empty() || wanted.empty() || partitions.empty()) return rows;  // no default: the site may choose otherwise
  const bool slurm = machine.scheduler.kind == spec::SchedulerKind::slurm;
  throw Error(Blame::user, text(machine.name, " has no ", slurm ? "partition '" : "queue '", wanted, "'"),
              text("--site scheduler.partition=NAME: ", base::did_you_mean(wanted, names)));
}

// PBS takes a job that no node can hold and lets it wait; it says "Can Never Run" only of what is more than all nodes
// together have.
void check_sizes(const std::string& where, const std::vector<site::Partition>& rows, const Shape& shape,
                 const NodeRequest& asked) {
  int64_t all = 0, good = 0;
  site::Partition most;
  for (const auto& row : rows) {
    if (row.nodes == 0) return;  // nobody says what they are like
    all += row.nodes;
    const bool holds = row.cpus >= asked.cores && row.gpus >= asked.gpus &&
                       (row.memory_mib == 0 || row.memory_mib >= asked.memory >> 20);
    good += holds ? row.nodes : 0;
    most.cpus = std::max(most.cpus, row.cpus);
    most.gpus = std::max(most.gpus, row.gpus);
    most.memory_mib = std::max(most.memory_mib, row.memory_mib);
  }
  if (good >= shape.nodes || all < shape.nodes) return;
  const std::string gpus = asked.gpus > 0 ? text(", ", asked.gpus, asked.gpus == 1 ? " GPU" : " GPUs") : "";
  const std::string memory = asked.memory > 0 ? text(", ", base::format_bytes(static_cast<double>(asked.memory))) : "";
  throw Error(
      Blame::user,
      text("the job would wait for good: ", good == 0 ? std::string("no node") : text(good, " of ", all, " nodes"),
           " of ", where,
           good == 1   ? " has "
           : good == 0 ? " has "
                       : " have ",
           asked.cores, " cores", gpus, memory, "; the largest have ", most.cpus, " cores",
           most.gpus > 0 ? text(", ", most.gpus, " GPUs") : "", ", ",
           base::format_bytes(static_cast<double>(most.memory_mib) * (1 << 20))),
      text("fewer --nodes or --ranks-per-node, another queue, or what a node has: --site cores_per_node=", most.cpus,
           asked.memory > 0 ? ", --site scheduler.memory=..." : ""));
}

}  // namespace

std::string check_site(const spec::Machine& machine, const std::vector<site::Partition>& partitions,
                       const Shape& shape) {
  const spec::Scheduler& scheduler = machine.scheduler;
  const bool slurm = scheduler.kind == spec::SchedulerKind::slurm;
  const auto rows = asked_rows(machine, partitions);
  if (rows.empty()) return "";
  const std::string where = text(slurm ? "partition " : "queue ",
                                 scheduler.partition.empty() ? text(rows[0].name, " (default)") : rows[0].name);
  if (std::none_of(rows.begin(), rows.end(), [](const auto& row) { return row.enabled; })) {
    throw Error(Blame::user, text(where, " takes no jobs (it is not enabled)"),
                "--site scheduler.partition=QUEUE, one that takes jobs: qstat -Q shows them (Ena yes)");
  }
  int64_t most_nodes = 0;
  std::optional<int64_t> limit = 0;  // the longest of the rows; nothing: none
  for (const auto& row : rows) {
    most_nodes += row.nodes;
    limit = limit && row.limit_seconds ? std::optional(std::max(*limit, *row.limit_seconds)) : std::nullopt;
  }
  if (limit && shape.walltime > static_cast<double>(*limit)) {
    throw Error(Blame::user,
                text(where, " lets a job run for ", base::exact_duration(static_cast<double>(*limit)), ", not for ",
                     base::exact_duration(shape.walltime)),
                text("--walltime ", base::exact_duration(static_cast<double>(*limit)), ", or another ",
                     slurm ? "partition" : "queue"));
  }
  if (most_nodes > 0 && shape.nodes > most_nodes) {
    throw Error(Blame::user, text(where, " has ", most_nodes, " nodes, not ", shape.nodes),
                text("--nodes ", most_nodes));
  }
  if (!slurm) check_sizes(where, rows, shape, node_request(shape, machine));
  const bool started = std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.started; });
  return started ? "" : text(where, " is stopped: jobs wait there until the site starts it");
}

}  // namespace lockstep::chain
