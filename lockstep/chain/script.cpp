// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/script.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/site/command.h"
#include "lockstep/site/cores.h"
#include "lockstep/site/launch.h"

namespace lockstep::chain {
namespace {

using base::Blame;
using base::Error;
using base::text;
using spec::ResourceForm;
using spec::Scheduler;

// Inside a directive sbatch and qsub know double quotes and backslashes; a path is the only value that may need them.
// Slurm replaces %x in file names: a percent sign of the path is doubled there.
std::string directive_path(const base::Path& path, bool double_percent) {
  std::string quoted = "\"";
  for (const char c : path.string()) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '%' && double_percent) quoted += '%';
    quoted += c;
  }
  return quoted + "\"";
}

// Whole nodes come with all their cores. On shared ones a GPU comes with its share of them: who takes more leaves GPUs
// that nobody else can use, waits for an empty node, and is charged for it.
int64_t cores_per_rank(const Shape& shape, const spec::Machine& machine) {
  if (machine.cores_per_node <= 0) return 0;
  const bool by_gpu = shape.gpus && !machine.scheduler.exclusive_nodes && machine.gpus_per_node > 0;
  return site::cores_per_rank(machine.cores_per_node, by_gpu ? machine.gpus_per_node : shape.ranks_per_node);
}

// PBS is asked for the cores of a node, also for those that no rank could have a whole share of.
int64_t cores_on_node(const Shape& shape, const spec::Machine& machine) {
  const bool all = machine.scheduler.exclusive_nodes || !shape.gpus;
  const int64_t cores = all ? machine.cores_per_node : cores_per_rank(shape, machine) * shape.ranks_per_node;
  return std::max(cores, shape.ranks_per_node);
}

// The GPUs of a node as a request names them: "v100:4".
std::string gpus(const Shape& shape, const Scheduler& scheduler) {
  return text(scheduler.gpu_type, scheduler.gpu_type.empty() ? "" : ":", shape.ranks_per_node);
}

std::string slurm_directives(const ScriptRequest& request, const spec::Machine& machine) {
  const Scheduler& scheduler = machine.scheduler;
  const Shape& shape = request.shape;
  std::vector<std::string> lines;
  const auto add = [&](const auto&... parts) { lines.push_back(text(parts...)); };
  const auto add_named = [&](const char* option, const std::string& value) {
    if (!value.empty()) add("--", option, "=", value);
  };
  add("--job-name=", request.name);
  const std::string output = directive_path(request.run / "link-", true);
  add("--output=", output.substr(0, output.size() - 1), "%j.out\"");
  add("--open-mode=append");
  add("--time=", walltime_words(shape.walltime));
  add("--nodes=", shape.nodes);
  add("--ntasks-per-node=", shape.ranks_per_node);
  if (const int64_t cores = cores_per_rank(shape, machine); cores > 0) add("--cpus-per-task=", cores);
  if (shape.gpus && scheduler.resources == ResourceForm::gpus_per_node) {
    add("--gpus-per-node=", gpus(shape, scheduler));
  } else if (shape.gpus) {
    add("--gres=gpu:", gpus(shape, scheduler));
  }
  if (scheduler.exclusive_nodes) add("--exclusive");
  add("--no-requeue");  // the chain goes on after a failed node; both would run twice
  // `lockstep train --ranks` goes on with the nodes that remain; with any other launcher the next link does.
  if (shape.nodes > 1 && scheduler.launcher == spec::Launcher::mpirun && scheduler.container.empty()) add("--no-kill");
  if (const double lead = signal_lead(scheduler, shape.walltime); lead > 0) {
    add("--signal=B:USR1@", std::llround(lead));
  }
  add_named("partition", scheduler.partition);
  add_named("account", scheduler.account);
  add_named("qos", scheduler.qos);
  add_named("constraint", scheduler.constraint);
  add_named("reservation", scheduler.reservation);
  for (const auto& line : scheduler.extra) add(line);
  std::string all;
  for (const auto& line : lines) all += text("#SBATCH ", line, "\n");
  return all;
}

std::string pbs_resources(const ScriptRequest& request, const spec::Machine& machine) {
  const Scheduler& scheduler = machine.scheduler;
  const Shape& shape = request.shape;
  const int64_t cores = cores_on_node(shape, machine);
  const std::string features = scheduler.constraint.empty() ? "" : text(":", scheduler.constraint);
  if (scheduler.resources == ResourceForm::nodes) {
    return text("nodes=", shape.nodes, ":ppn=", cores, shape.gpus ? text(":gpus=", shape.ranks_per_node) : "",
                features);
  }
  const std::string type = scheduler.gpu_type.empty() || !shape.gpus ? "" : text(":gpu_type=", scheduler.gpu_type);
  return text("select=", shape.nodes, ":ncpus=", cores, ":mpiprocs=", shape.ranks_per_node,
              shape.gpus ? text(":ngpus=", shape.ranks_per_node) : "", type, features);
}

std::string pbs_directives(const ScriptRequest& request, const spec::Machine& machine) {
  const Scheduler& scheduler = machine.scheduler;
  const bool torque = scheduler.resources == ResourceForm::nodes;
  if (!scheduler.qos.empty() && !torque) {
    throw Error(Blame::user, text("scheduler.qos '", scheduler.qos, "': PBS has queues, no quality of service"),
                "give the queue as scheduler.partition, or what the site wants instead as scheduler.extra");
  }
  std::vector<std::string> lines;
  const auto add = [&](const auto&... parts) { lines.push_back(text(parts...)); };
  add("-N ", request.name);
  add("-j oe");
  add("-o ", directive_path(request.run / "pbs.out", false));
  add("-r n");  // the chain goes on after a failed node; both would run twice
  add("-l walltime=", walltime_words(request.shape.walltime));
  add("-l ", pbs_resources(request, machine));
  if (!torque) add("-l place=scatter", scheduler.exclusive_nodes ? ":excl" : "");
  if (torque && scheduler.exclusive_nodes) add("-n");
  if (torque && !scheduler.qos.empty()) add("-l qos=", scheduler.qos);
  // A reservation is a queue of its own there.
  const std::string& queue = scheduler.reservation.empty() ? scheduler.partition : scheduler.reservation;
  if (!queue.empty()) add("-q ", queue);
  if (!scheduler.account.empty()) add("-A ", scheduler.account);
  for (const auto& line : scheduler.extra) add(line);
  std::string all;
  for (const auto& line : lines) all += text("#PBS ", line, "\n");
  return all;
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words = base::split(line, ' ');
  std::erase(words, "");
  return words;
}

// The names are told as well: an mpirun that goes by ssh brings only named variables to other nodes.
std::string exports(const Scheduler& scheduler) {
  std::string all;
  std::vector<std::string> names;
  for (const auto& line : scheduler.environment) {
    const size_t equals = line.find('=');
    names.push_back(line.substr(0, equals));
    all += text("export ", names.back(), "=", site::shell_word(line.substr(equals + 1)), "\n");
  }
  return names.empty() ? "" : text(all, "export ", site::kPassVariable, "=", base::join(names, ","), "\n");
}

// A line end in a directive or a comment would begin a line of the script.
void check_path(const char* option, const base::Path& path) {
  const std::string& name = path.native();
  if (std::none_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; })) return;
  std::string shown;
  for (const char c : name) shown += (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) ? '?' : c;
  throw Error(Blame::user, text(option, " ", shown, ": a line end or another control character stands in this path"),
              "rename the folder, or name another");
}

}  // namespace

std::string queue_name(const base::Path& run) {
  constexpr size_t kMost = 15;
  constexpr size_t kHash = 6;
  std::string name;
  for (const char c : run.filename().string()) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
    name += plain ? c : '-';
  }
  if (name.empty() || !((name[0] >= 'a' && name[0] <= 'z') || (name[0] >= 'A' && name[0] <= 'Z'))) name = "r" + name;
  return text(name.substr(0, kMost - kHash - 1), "-", base::sha256_hex(run.string()).substr(0, kHash));
}

std::string walltime_words(double seconds) {
  const auto minutes = static_cast<long long>(std::ceil(seconds / 60 - 1e-9));
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%02lld:%02lld:00", minutes / 60, minutes % 60);
  return buffer;
}

double signal_lead(const Scheduler& scheduler, double walltime) {
  constexpr double kShortest = 600;
  if (walltime < kShortest) return 0;
  return std::min(scheduler.signal_lead, walltime / 10);
}

std::vector<std::string> train_command(const ScriptRequest& request, const spec::Machine& machine) {
  const Scheduler& scheduler = machine.scheduler;
  const int64_t ranks = request.shape.ranks();
  std::vector<std::string> command;
  const std::vector<std::string> container = words_of(scheduler.container);
  const bool by_srun = scheduler.launcher == spec::Launcher::srun;
  // Without a container `lockstep train --ranks` starts mpirun itself and watches over the ranks.
  const bool by_mpirun = !by_srun && !container.empty() && ranks > 1;
  if (by_srun) {
    // One dead rank ends the others at once; srun does not take the cores of a task from the job (since 22.05).
    command = {"srun", "--mpi=pmix", "--kill-on-bad-exit=1"};
    if (const int64_t cores = cores_per_rank(request.shape, machine); cores > 0) {
      command.push_back(text("--cpus-per-task=", cores));
    }
  } else if (by_mpirun) {
    // A node file names a host once a core (Torque): left to itself mpirun would fill the first node.
    const std::string spread = text("ppr:", request.shape.ranks_per_node, ":node");
    command = {"mpirun", "--bind-to", "none", "--map-by", spread, "-n", text(ranks)};
  }
  command.insert(command.end(), container.begin(), container.end());
  command.push_back(container.empty() ? request.program : "lockstep");
  command.insert(command.end(), {"train", request.job.string(), "--run", request.run.string()});
  if (request.device != "cpu") command.insert(command.end(), {"--device", request.device});
  if (!by_srun && !by_mpirun && ranks > 1) command.insert(command.end(), {"--ranks", text(ranks)});
  return command;
}

std::string batch_script(const ScriptRequest& request, const spec::Machine& machine) {
  check_path("--run", request.run);
  check_path("this folder", request.folder);
  check_path("this program", request.program);
  const bool pbs = machine.scheduler.kind == spec::SchedulerKind::pbs;
  std::string script =
      text("#!/bin/bash\n", pbs ? pbs_directives(request, machine) : slurm_directives(request, machine),
           "\n# One link of a chain, made by `lockstep submit`: lockstep submit --status ",
           site::shell_word(request.run.string()), "\n");
  script += text("cd ", site::shell_word(request.folder.string()), " || exit 3\n");
  if (pbs) {
    script += text("exec >> ", site::shell_word((request.run / "link-").string()), "\"$PBS_JOBID\".out 2>&1\n");
    if (request.shape.nodes > 1) {
      script += "[ -z \"${PBS_NODEFILE:-}\" ] || export OMPI_MCA_orte_default_hostfile=\"$PBS_NODEFILE\"\n";
    }
  }
  for (const auto& line : machine.scheduler.modules) script += line + "\n";
  script += exports(machine.scheduler);
  std::vector<std::string> command{request.program, "submit", "--link", request.run.string(), "--"};
  const auto train = train_command(request, machine);
  command.insert(command.end(), train.begin(), train.end());
  return script + text("exec ", site::shell_words(command), "\n");
}

}  // namespace lockstep::chain
