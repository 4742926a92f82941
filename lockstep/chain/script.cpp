// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/script.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/site/command.h"
#include "lockstep/site/cores.h"
#include "lockstep/site/launch.h"
#include "lockstep/site/remote_shell.h"

namespace lockstep::chain {
namespace {

using base::Blame;
using base::Error;
using base::text;
using spec::ResourceForm;
using spec::Scheduler;

// Inside a directive sbatch knows double quotes and backslashes; a path is the only value that may need them. Slurm
// replaces %x in file names: a percent sign of the path is doubled.
std::string slurm_path(const base::Path& path) {
  std::string quoted = "\"";
  for (const char c : path.string()) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '%') quoted += '%';
    quoted += c;
  }
  return quoted + "\"";
}

// Memory is asked for in whole GiB, which Slurm writes G and PBS gb.
int64_t whole_gib(int64_t bytes) {
  constexpr int64_t kGib = int64_t{1} << 30;
  return (bytes + kGib - 1) / kGib;
}

// What the user asks for by his own directive or chunk resource is not asked for twice.
bool asks_for_memory(const Scheduler& scheduler) {
  const auto about = [](const std::string& line) {
    return line.find("--mem") != std::string::npos || line.starts_with("mem=") ||
           line.find(":mem=") != std::string::npos || line.find(" mem=") != std::string::npos;
  };
  return about(scheduler.constraint) || std::any_of(scheduler.extra.begin(), scheduler.extra.end(), about);
}

// Whole nodes come with all their cores. On shared ones a GPU comes with its share of them: who takes more leaves GPUs
// that nobody else can use, waits for an empty node, and is charged for it.
int64_t cores_per_rank(const Shape& shape, const spec::Machine& machine) {
  if (shape.cores > 0) return std::max<int64_t>(1, shape.cores / shape.ranks_per_node);
  if (machine.cores_per_node <= 0) return 0;
  const bool by_gpu = shape.gpus && !machine.scheduler.exclusive_nodes && machine.gpus_per_node > 0;
  return site::cores_per_rank(machine.cores_per_node, by_gpu ? machine.gpus_per_node : shape.ranks_per_node);
}

// PBS is asked for the cores of a node, also for those that no rank could have a whole share of.
int64_t cores_on_node(const Shape& shape, const spec::Machine& machine) {
  if (shape.cores > 0) return std::max(shape.cores, shape.ranks_per_node);
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
  const std::string output = slurm_path(request.run / "link-");
  add("--output=", output.substr(0, output.size() - 1), "%j.out\"");
  add("--open-mode=append");
  add("--time=", walltime_words(shape.walltime, scheduler.kind));
  add("--nodes=", shape.nodes);
  add("--ntasks-per-node=", shape.ranks_per_node);
  if (const int64_t cores = cores_per_rank(shape, machine); cores > 0) add("--cpus-per-task=", cores);
  if (shape.gpus && scheduler.resources == ResourceForm::gpus_per_node) {
    add("--gpus-per-node=", gpus(shape, scheduler));
  } else if (shape.gpus) {
    add("--gres=gpu:", gpus(shape, scheduler));
  }
  if (scheduler.exclusive_nodes) add("--exclusive");
  // Whole nodes come with the memory of the site's default all the same: 0 is all that a node has.
  if (!asks_for_memory(scheduler)) {
    if (scheduler.exclusive_nodes && scheduler.memory == 0) {
      add("--mem=0");
    } else if (shape.memory > 0) {
      add("--mem=", whole_gib(shape.memory), "G");
    }
  }
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

// Behind "-l ", a line each.
std::vector<std::string> pbs_resources(const ScriptRequest& request, const spec::Machine& machine) {
  const Scheduler& scheduler = machine.scheduler;
  const Shape& shape = request.shape;
  const NodeRequest node = node_request(shape, machine);
  const int64_t memory = asks_for_memory(scheduler) ? 0 : whole_gib(node.memory);
  if (scheduler.resources == ResourceForm::job_wide) {
    std::vector<std::string> lines{text("ncpus=", shape.nodes * node.cores)};
    if (memory > 0) lines.push_back(text("mem=", shape.nodes * memory, "gb"));
    if (node.gpus > 0) lines.push_back(text("ngpus=", shape.nodes * node.gpus));
    if (!scheduler.constraint.empty()) lines.push_back(scheduler.constraint);
    return lines;
  }
  const std::string features = scheduler.constraint.empty() ? "" : text(":", scheduler.constraint);
  if (scheduler.resources == ResourceForm::nodes) {
    std::vector<std::string> lines{
        text("nodes=", shape.nodes, ":ppn=", node.cores, node.gpus > 0 ? text(":gpus=", node.gpus) : "", features)};
    if (memory > 0) lines.push_back(text("mem=", shape.nodes * memory, "gb"));  // of all nodes together
    return lines;
  }
  const std::string type = scheduler.gpu_type.empty() || !shape.gpus ? "" : text(":gpu_type=", scheduler.gpu_type);
  return {text("select=", shape.nodes, ":ncpus=", node.cores, ":mpiprocs=", shape.ranks_per_node,
               node.gpus > 0 ? text(":ngpus=", node.gpus) : "", type, memory > 0 ? text(":mem=", memory, "gb") : "",
               features),
          text("place=scatter", scheduler.exclusive_nodes ? ":excl" : "")};
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
  add("-j oe");  // into the folder of the script, under the number of the job: what PBS itself has to say
  add("-r n");   // the chain goes on after a failed node; both would run twice
  add("-l walltime=", walltime_words(request.shape.walltime, scheduler.kind));
  for (const auto& line : pbs_resources(request, machine)) add("-l ", line);
  if (torque && scheduler.exclusive_nodes) add("-n");
  if (torque && !scheduler.qos.empty()) add("-l qos=", scheduler.qos);
  // A reservation is a queue of its own there.
  const std::string& queue = scheduler.reservation.empty() ? scheduler.partition : scheduler.reservation;
  if (!queue.empty()) add("-q ", queue);
  if (!scheduler.account.empty()) add("-A ", scheduler.account);
  if (!scheduler.project.empty()) add("-P ", scheduler.project);
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

// The folder from which a job is submitted goes into its environment, and PBS takes no quotes there ("cannot send
// environment with the job", 23.06) and multiplies backslashes.
void check_pbs_path(const char* option, const base::Path& run) {
  if (run.native().find_first_of("\"'\\") == std::string::npos) return;
  throw Error(Blame::user,
              text(option, " ", run.string(), ": PBS takes no folder with a quote or a backslash in its name"),
              text("rename the folder, or name another: ", option, " OTHER_FOLDER"));
}

// A new file (-C), never one that somebody has put there; a job that is started again has its second output beside the
// first.
constexpr const char* kOwnOutput =
    R"([ -e "$lockstep_out.out" ] || [ -L "$lockstep_out.out" ] && lockstep_out="$lockstep_out.$$"
set -C; command exec > "$lockstep_out.out" 2>&1; set +C
)";

// What PBS does not bring into a job: the PATH that has its own commands, and the user's umask (it sets 077).
std::string pbs_surroundings(const ScriptRequest& request) {
  std::string lines;
  if (request.file_mask >= 0) {
    char mask[32];
    std::snprintf(mask, sizeof mask, "umask %04o\n", static_cast<unsigned>(request.file_mask));
    lines += mask;
  }
  if (!request.commands.empty()) {
    lines += text("export PATH=\"$PATH\":", site::shell_word(request.commands.string()), "\n");
  }
  return lines;
}

// 0022 of "Umask:\t0022": reading it by umask() would change it for a moment.
int read_file_mask() {
  for (const auto& line : base::split(base::read_file("/proc/self/status"), '\n')) {
    if (line.starts_with("Umask:")) return static_cast<int>(std::strtol(line.c_str() + 6, nullptr, 8));
  }
  return -1;
}

// Where the scheduler's commands are, unless every job has that on its PATH.
base::Path commands_folder(const spec::Machine& machine) {
  if (machine.scheduler.kind != spec::SchedulerKind::pbs) return {};
  const auto found = site::find_on_path("qsub");
  if (!found) return {};
  std::error_code unresolved;
  const base::Path folder = std::filesystem::absolute(*found, unresolved).parent_path();
  return folder == "/usr/bin" || folder == "/bin" ? base::Path() : folder;
}

}  // namespace

void add_surroundings(ScriptRequest& script, const spec::Machine& machine) {
  script.commands = commands_folder(machine);
  script.file_mask = read_file_mask();
}

NodeRequest node_request(const Shape& shape, const spec::Machine& machine) {
  return {
      .cores = cores_on_node(shape, machine), .gpus = shape.gpus ? shape.ranks_per_node : 0, .memory = shape.memory};
}

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

std::string walltime_words(double seconds, spec::SchedulerKind scheduler) {
  const long long grain = scheduler == spec::SchedulerKind::pbs ? 1 : 60;
  const auto whole = static_cast<long long>(std::ceil(seconds / static_cast<double>(grain) - 1e-9)) * grain;
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%02lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
  return buffer;
}

double signal_lead(const Scheduler& scheduler, double walltime) {
  constexpr double kShortest = 600;
  if (walltime < kShortest) return 0;
  return std::min(scheduler.signal_lead, walltime / 10);
}

std::vector<std::string> work_command(const ScriptRequest& request, const spec::Machine& machine) {
  const Scheduler& scheduler = machine.scheduler;
  const int64_t ranks = request.shape.ranks();
  std::vector<std::string> command;
  const std::vector<std::string> container = words_of(scheduler.container);
  const bool by_srun = scheduler.launcher == spec::Launcher::srun;
  // Without a container `lockstep train --ranks` starts mpirun itself and watches over the ranks.
  const bool by_mpirun = !by_srun && !container.empty() && ranks > 1;
  const bool tunes = !request.work.empty() && request.work.front() == "tune";
  if (tunes && (by_srun || request.shape.nodes > 1 || !container.empty())) {
    // Once a node: each of them works on the study by itself.
    command = by_srun ? std::vector<std::string>{"srun", "--ntasks-per-node=1"}
                      : std::vector<std::string>{"mpirun", "--bind-to", "none", "--map-by", "ppr:1:node"};
    command.insert(command.end(), {"-n", text(request.shape.nodes)});
  } else if (tunes) {
    // In the job's own process.
  } else if (by_srun) {
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
  if (tunes) {
    command.insert(command.end(), {"tune", "--workers", text(request.shape.ranks_per_node)});
    if (request.device != "cpu") command.insert(command.end(), {"--device", request.device});
    command.insert(command.end(), request.work.begin() + 1, request.work.end());
    return command;
  }
  if (request.work.empty()) {
    command.insert(command.end(), {"train", request.job.string(), "--run", request.run.string()});
  } else {
    command.insert(command.end(), request.work.begin(), request.work.end());
  }
  if (request.device != "cpu") command.insert(command.end(), {"--device", request.device});
  if (!by_srun && !by_mpirun && ranks > 1) command.insert(command.end(), {"--ranks", text(ranks)});
  return command;
}

// Slurm opens its --output there, and follows a link.
std::string warn_of_open_folder(const base::Path& folder, spec::SchedulerKind scheduler) {
  struct stat status {};
  const bool open = ::stat(folder.c_str(), &status) == 0 && (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (!open || scheduler != spec::SchedulerKind::slurm) return "";
  return text("others can write to ", folder.string(),
              ", and Slurm follows a link that somebody puts there for its output: chmod go-w ",
              base::shell_path(folder.string()));
}

std::string batch_script(const ScriptRequest& request, const spec::Machine& machine) {
  const char* option = request.command.empty() ? "--run" : "--to";  // by which the user names that folder
  check_path(option, request.run);
  check_path("this folder", request.folder);
  check_path("this program", request.program);
  const bool pbs = machine.scheduler.kind == spec::SchedulerKind::pbs;
  if (pbs) check_pbs_path(option, request.run);
  std::string script = text(
      "#!/bin/bash\n", pbs ? pbs_directives(request, machine) : slurm_directives(request, machine),
      request.command.empty() ? text("\n# One link of a chain, made by `lockstep submit`: lockstep submit --status ",
                                     site::shell_word(request.run.string()), "\n")
                              : "\n# One stage, made by `lockstep workflow run`.\n");
  // A warning that comes while modules are loaded would end the script, and with it the chain.
  script += "trap '' USR1\n";
  script += text("cd ", site::shell_word(request.folder.string()), " || exit 3\n");
  if (pbs) {
    script += pbs_surroundings(request);
    script += text("lockstep_out=", site::shell_word((request.run / "link-").string()), "\"$PBS_JOBID\"\n", kOwnOutput);
    if (request.shape.nodes > 1) {
      script += "[ -z \"${PBS_NODEFILE:-}\" ] || export OMPI_MCA_orte_default_hostfile=\"$PBS_NODEFILE\"\n";
    }
  }
  if (pbs && machine.scheduler.remote_shell != spec::RemoteShell::standard) {
    script += text("export ", site::kRemoteShellVariable, "=", name_of(machine.scheduler.remote_shell), "\n");
  }
  for (const auto& line : machine.scheduler.modules) script += line + "\n";
  script += exports(machine.scheduler);
  if (!request.command.empty()) return script + text("exec ", site::shell_words(request.command), "\n");
  std::vector<std::string> command{request.program, "submit", "--link", request.run.string(), "--"};
  const auto work = work_command(request, machine);
  command.insert(command.end(), work.begin(), work.end());
  return script + text("exec ", site::shell_words(command), "\n");
}

}  // namespace lockstep::chain
