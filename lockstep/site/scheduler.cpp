// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/scheduler.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <vector>

#include "lockstep/base/text.h"
#include "lockstep/site/command.h"
#include "lockstep/site/pbs_answer.h"

namespace lockstep::site {
namespace {

using std::chrono::seconds;
using Seconds = std::optional<seconds>;
constexpr std::chrono::milliseconds kPatience{5000};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::optional<int64_t> integer(std::string_view digits) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

int64_t count(const char* name) {
  return integer(variable(name)).value_or(0);
}

Scheduler read_slurm() {
  Scheduler slurm;
  slurm.name = SchedulerName::slurm;
  slurm.job_id = variable("SLURM_JOB_ID");
  slurm.partition = variable("SLURM_JOB_PARTITION");
  slurm.node_list = variable("SLURM_JOB_NODELIST");
  slurm.nodes = count("SLURM_JOB_NUM_NODES");
  slurm.tasks = count("SLURM_NTASKS");
  slurm.restarts = count("SLURM_RESTART_COUNT");
  slurm.submit_dir = variable("SLURM_SUBMIT_DIR");
  return slurm;
}

Scheduler read_pbs() {
  Scheduler pbs;
  pbs.name = SchedulerName::pbs;
  pbs.job_id = variable("PBS_JOBID");
  pbs.partition = variable("PBS_QUEUE");
  pbs.node_list = variable("PBS_NODEFILE");
  pbs.submit_dir = variable("PBS_O_WORKDIR");
  pbs.submit_path = variable("PBS_O_PATH");
  return pbs;
}

// "[[days-]hours:]minutes:seconds" as Slurm and PBS write it; Slurm's two fields are minutes:seconds.
Seconds clock_text(std::string_view words) {
  int64_t days = 0;
  if (const size_t dash = words.find('-'); dash != std::string_view::npos) {
    const auto number = integer(words.substr(0, dash));
    if (!number) return std::nullopt;
    days = *number;
    words.remove_prefix(dash + 1);
  }
  int64_t total = 0;
  for (const auto& field : base::split(words, ':')) {
    const auto number = integer(field);
    if (!number || *number < 0) return std::nullopt;
    total = total * 60 + *number;
  }
  return seconds(days * 86400 + total);
}

std::string walltime_text(seconds walltime) {
  const int64_t total = walltime.count();
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%02lld:%02lld:%02lld", static_cast<long long>(total / 3600),
                static_cast<long long>(total / 60 % 60), static_cast<long long>(total % 60));
  return buffer;
}

}  // namespace

const char* name_of(SchedulerName name) {
  switch (name) {
    case SchedulerName::none:
      return "none";
    case SchedulerName::slurm:
      return "slurm";
    case SchedulerName::pbs:
      return "pbs";
  }
  return "none";
}

Scheduler read_scheduler() {
  const bool slurm_commands = find_on_path("sbatch").has_value();
  const bool pbs_commands = find_on_path("qsub").has_value() && find_on_path("qstat").has_value();
  const bool in_slurm = std::getenv("SLURM_JOB_ID") != nullptr;
  const bool in_pbs = std::getenv("PBS_JOBID") != nullptr;
  // An allocation decides; a Slurm site may offer PBS commands as well (slurm-wlm-torque), not the other way round.
  if (in_slurm || (slurm_commands && !in_pbs)) {
    Scheduler slurm = read_slurm();
    slurm.commands = slurm_commands;
    return slurm;
  }
  if (in_pbs || pbs_commands) {
    Scheduler pbs = read_pbs();
    pbs.commands = pbs_commands;
    return pbs;
  }
  return {};
}

Seconds left_by_squeue(std::string_view answer) {
  return clock_text(base::trim(answer));
}

Seconds left_by_qstat(std::string_view answer, int64_t now) {
  const auto jobs = parse_pbs(answer);
  if (jobs.empty()) return std::nullopt;
  const PbsEntry& job = jobs.front();
  if (const auto left = integer(job.value("Walltime.Remaining"))) return seconds(*left);  // Torque
  const Seconds limit = clock_text(job.value("Resource_List.walltime"));
  auto start = pbs_time(job.value("stime"));
  if (!start) start = pbs_time(job.value("start_time"));  // Torque
  if (!limit || !start) return std::nullopt;
  return *limit - seconds(now - *start);
}

std::string job_scratch() {
  return variable("PBS_JOBFS");
}

Seconds seconds_left() {
  const Scheduler scheduler = read_scheduler();
  if (!scheduler.in_allocation()) return std::nullopt;
  const auto now = static_cast<int64_t>(std::time(nullptr));
  if (const auto end = integer(variable(kJobEndVariable))) return seconds(*end - now);
  if (scheduler.name == SchedulerName::pbs) {
    const auto answer = run_for_output({"qstat", "-f", scheduler.job_id}, kPatience);
    return answer ? left_by_qstat(*answer, now) : std::nullopt;
  }
  if (const auto end = integer(variable("SLURM_JOB_END_TIME"))) return seconds(*end - now);  // Slurm 23.02 and newer
  const auto answer = run_for_output({"squeue", "-h", "-j", scheduler.job_id, "-o", "%L"}, kPatience);
  return answer ? left_by_squeue(*answer) : std::nullopt;
}

namespace {

// How a job finds this program: Slurm hands PATH on, PBS does not.
std::string program_word(SchedulerName name) {
  std::error_code unreadable;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", unreadable);
  if (unreadable || self.filename() != "lockstep") return "lockstep";
  return name == SchedulerName::slurm && find_on_path("lockstep") ? "lockstep" : shell_word(self.string());
}

}  // namespace

std::string submit_line(SchedulerName name, std::string_view verb, std::string_view arguments, seconds walltime) {
  const std::string command = base::text(program_word(name), " ", verb, arguments.empty() ? "" : " ", arguments);
  if (name == SchedulerName::pbs) {
    return base::text("echo ", shell_word(base::text("cd \"$PBS_O_WORKDIR\" && ", command)), " | qsub -N lockstep-",
                      verb, " -l select=1 -l place=excl -l walltime=", walltime_text(walltime));
  }
  return base::text("sbatch --job-name=lockstep-", verb, " --nodes=1 --exclusive --time=", walltime_text(walltime),
                    " --wrap ", shell_word(command));
}

}  // namespace lockstep::site
