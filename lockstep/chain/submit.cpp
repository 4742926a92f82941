// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/submit.h"

#include <sys/stat.h>

#include "lockstep/chain/refusal.h"
#include "lockstep/site/batch.h"

namespace lockstep::chain {
namespace {

using For = site::Waits::For;

// Whom the i-th of several links queued at once waits for. PBS has nothing like a name that only one job may run under.
site::Waits waits_for(const ChainTerms& terms, const std::vector<std::string>& before) {
  if (terms.submit_from == spec::SubmitFrom::job) return {};
  if (terms.scheduler == site::SchedulerName::slurm) return {For::same_name, ""};
  return before.empty() ? site::Waits{} : site::Waits{For::end_of, before.back()};
}

}  // namespace

Queued submit(const SubmitRequest& request, const Prepared& prepared) {
  base::make_folders(request.run);
  // As it is now: whoever edits the job's file later does not change a chain on its way.
  base::write_json(request.run / "submitted.json", spec::changed_json(request.job));
  const base::Path script = request.run / "submit.sh";
  base::write_file(script, prepared.script);
  ::chmod(script.c_str(), 0755);  // for people; the scheduler reads it anyway
  std::error_code none;
  std::filesystem::remove(request.run / "queue.json", none);  // of an earlier chain
  ChainRecord record(request.run);
  record.open(prepared.terms);  // before the first job can look for it
  Queued queued;
  for (int64_t i = 0; i < prepared.queue_now; ++i) {
    const auto submitted =
        site::submit_script(prepared.terms.scheduler, script, waits_for(prepared.terms, queued.jobs));
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
