// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/submit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/chain/refusal.h"

namespace lockstep::chain {
namespace {

using base::text;
using For = site::Waits::For;

base::Path script_file(const base::Path& run) {
  return run / "submit.sh";
}

// Whom the i-th of several links queued at once waits for. PBS has nothing like a name that only one job may run under.
site::Waits waits_for(const ChainTerms& terms, const std::vector<std::string>& before) {
  if (terms.submit_from == spec::SubmitFrom::job) return {};
  if (terms.scheduler == site::SchedulerName::slurm) return {For::same_name, ""};
  return before.empty() ? site::Waits{} : site::Waits{For::end_of, before.back()};
}

}  // namespace

void make_run_folder(const base::Path& run) {
  if (std::filesystem::exists(run)) return;
  base::make_synced_folders(run);
  using std::filesystem::perms;
  std::filesystem::permissions(run, perms::group_write | perms::others_write, std::filesystem::perm_options::remove);
}

void write_script(const base::Path& run, const std::string& script) {
  base::write_file(script_file(run), script);
  ::fchmod(OpenFile(script_file(run)).get(), 0755);  // for people; and nobody else's to write
}

site::Submitted queue_script(const base::Path& run, site::SchedulerName scheduler, const site::Waits& waits) {
  const base::Path path = script_file(run);
  try {
    const OpenFile script(path);
    if (!script.is_ours_alone()) {
      return {"", text(path.string(), " can be written by others, and would run as you: ls -l ",
                       base::shell_path(path.string()), "; submit the job again to have your own")};
    }
    // The file that was looked at, whatever has its name by now.
    return site::submit_script(scheduler, text("/proc/", ::getpid(), "/fd/", script.get()), waits, run);
  } catch (const base::Error& error) {
    return {"", error.what()};
  }
}

Queued submit(const SubmitRequest& request, const Prepared& prepared) {
  make_run_folder(request.run);
  // As it is now: whoever edits the job's file later does not change a chain on its way.
  if (request.work.empty()) base::write_json(request.run / "submitted.json", spec::changed_json(request.job));
  write_script(request.run, prepared.script);
  std::error_code none;
  std::filesystem::remove(request.run / "queue.json", none);  // of an earlier chain
  ChainRecord record(request.run);
  record.open(prepared.terms);  // before the first job can look for it
  Queued queued;
  for (int64_t i = 0; i < prepared.queue_now; ++i) {
    const auto submitted = queue_script(request.run, prepared.terms.scheduler, waits_for(prepared.terms, queued.jobs));
    if (submitted.id.empty() && queued.jobs.empty()) {
      record.close("refused", 0, prepared.terms);
      throw refusal_error(submitted.refusal, request.machine.scheduler);
    }
    if (submitted.id.empty()) {  // a limit on the jobs of a user (MaxSubmitJobs): those that stand there are of use
      record.refused("", submitted.refusal);
      queued.refusal = in_one_line(submitted.refusal);
      break;
    }
    record.queued(submitted.id, "");
    queued.jobs.push_back(submitted.id);
  }
  return queued;
}

}  // namespace lockstep::chain
