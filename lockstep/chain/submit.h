// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/chain/prepare.h"
#include "lockstep/site/batch.h"

namespace lockstep::chain {

// What the scheduler took.
struct Queued {
  std::vector<std::string> jobs;
  std::string refusal;  // of the link behind the last of them, where not all could be queued at once
};

// Writes job and script into the run folder, opens its chain and queues the first link, or all of them. When the
// scheduler refuses the first, the chain is closed again and the error says what to change; a later one leaves a
// shorter chain.
Queued submit(const SubmitRequest& request, const Prepared& prepared);

// Makes the folder in which jobs write. A new one nobody else can write to, whatever the umask: Slurm opens its
// --output there and follows links.
void make_run_folder(const base::Path& run);
void write_script(const base::Path& run, const std::string& script);  // RUN/submit.sh

// Queues RUN/submit.sh once more. A refusal unless it is a file that this user alone can write: it runs as this user,
// and who else may write to the folder could have put another in its place.
site::Submitted queue_script(const base::Path& run, site::SchedulerName scheduler, const site::Waits& waits);

}  // namespace lockstep::chain
