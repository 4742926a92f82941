// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "lockstep/base/file.h"
#include "lockstep/site/scheduler.h"

namespace lockstep::site {

// The machine document's scheduler.remote_shell, as the script hands it to the job: "ssh", "pbs_tmrsh"; absent: as
// found.
constexpr const char* kRemoteShellVariable = "LOCKSTEP_REMOTE_SHELL";

// What Open MPI's mpirun starts its daemons on other nodes with, while this lives. Many PBS sites let nobody log in to
// a node by ssh; there pbs_tmrsh starts programs on the nodes of the job. It starts a program and no line for a shell,
// as mpirun wants it, so a script stands in between. Set in the environment of this process, from where mpirun takes
// it; a build of Open MPI that knows PBS itself does not look at it. Nothing is done outside a PBS job, where the user
// named an agent to Open MPI himself, and with "ssh". Machine error: "pbs_tmrsh" where there is none.
class RemoteShell {
 public:
  explicit RemoteShell(const Scheduler& scheduler);
  ~RemoteShell();
  RemoteShell(const RemoteShell&) = delete;
  RemoteShell& operator=(const RemoteShell&) = delete;

  const char* name() const { return folder_ ? "pbs_tmrsh" : "ssh"; }

 private:
  std::optional<base::TemporaryFolder> folder_;  // of the script
};

}  // namespace lockstep::site
