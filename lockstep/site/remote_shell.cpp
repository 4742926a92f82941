// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/remote_shell.h"

#include <unistd.h>

#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/site/command.h"

namespace lockstep::site {
namespace {

constexpr const char* kProgram = "pbs_tmrsh";
// Open MPI 4 and 5 (PRRTE). A daemon on another node shall start no further ones: only this node's script is there.
constexpr const char* kAgents[] = {"OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent"};
constexpr const char* kDirect[] = {"OMPI_MCA_plm_rsh_no_tree_spawn", "PRTE_MCA_plm_ssh_no_tree_spawn"};

// A job need not have PBS's own commands on its PATH; who submitted it had.
std::optional<std::string> find_tmrsh(const Scheduler& scheduler) {
  if (auto found = find_on_path(kProgram)) return found;
  for (const auto& folder : base::split(scheduler.submit_path, ':')) {
    std::string file = base::text(folder, "/", kProgram);
    if (!folder.empty() && ::access(file.c_str(), X_OK) == 0) return file;
  }
  return std::nullopt;
}

}  // namespace

RemoteShell::RemoteShell(const Scheduler& scheduler) {
  const char* told = std::getenv(kRemoteShellVariable);
  const std::string wanted = told ? told : "";
  if (scheduler.name != SchedulerName::pbs || !scheduler.in_allocation() || wanted == "ssh") return;
  for (const char* agent : kAgents) {
    if (std::getenv(agent)) return;
  }
  const auto program = find_tmrsh(scheduler);
  if (!program && wanted == kProgram) {
    throw base::Error(
        base::Blame::machine,
        base::text("scheduler.remote_shell is pbs_tmrsh, which is not on PATH on ", "the first node of this job"),
        "load the site's PBS module in scheduler.modules, or let ranks start by ssh: "
        "--site scheduler.remote_shell=ssh");
  }
  if (!program) return;
  folder_.emplace();
  const base::Path script = folder_->path() / "remote_shell";
  base::write_file(script, base::text("#!/bin/sh\n# mpirun gives a host and one line for its shell.\n",
                                      "while [ \"${1#-}\" != \"$1\" ]; do shift; done\nhost=$1\nshift\nexec ",
                                      shell_word(*program), " \"$host\" /bin/sh -c \"$*\"\n"));
  // Open MPI takes words; a temporary folder may allow no programs.
  const std::string words = base::text("/bin/sh ", script.string());
  for (const char* agent : kAgents) ::setenv(agent, words.c_str(), 1);
  for (const char* direct : kDirect) ::setenv(direct, "1", 1);
}

RemoteShell::~RemoteShell() {
  if (!folder_) return;
  for (const char* agent : kAgents) ::unsetenv(agent);
  for (const char* direct : kDirect) ::unsetenv(direct);
}

}  // namespace lockstep::site
