// SPDX-License-Identifier: Apache-2.0
#include "lockstep/workflow/queue.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/chain/chain.h"
#include "lockstep/chain/refusal.h"
#include "lockstep/chain/submit.h"
#include "lockstep/run/folder.h"
#include "lockstep/run/journal.h"
#include "lockstep/site/partitions.h"
#include "lockstep/spec/workflow_rules.h"
#include "lockstep/workflow/digest.h"
#include "lockstep/workflow/freshness.h"

namespace lockstep::workflow {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;
using For = site::Waits::For;

site::SchedulerName scheduler_of(const spec::Machine& machine) {
  return machine.scheduler.kind == spec::SchedulerKind::pbs ? site::SchedulerName::pbs : site::SchedulerName::slurm;
}

std::string queue_name_of(const StatePaths& paths, const std::string& stage) {
  return chain::queue_name(paths.stage(stage));
}

chain::ScriptRequest script_request(const QueueRequest& request, const spec::Stage& stage) {
  const StatePaths paths{request.state};
  chain::ScriptRequest script;
  script.name = queue_name_of(paths, stage.name);
  script.folder = request.folder;
  script.run = paths.stage(stage.name);
  script.program = request.program;
  script.device = stage.resources.gpus > 0 ? "cuda" : "cpu";
  script.shape = shape_of(stage, request.machine);
  script.command = {request.program, "workflow", "run",  request.document.string(),
                    "--stage",       stage.name, "--to", request.state.string()};
  for (const auto& set : request.sets) script.command.insert(script.command.end(), {"--set", set});
  chain::add_surroundings(script, request.machine);
  return script;
}

// The stages that need a job, in an order in which each stands behind those that it waits for.
std::vector<size_t> stages_to_queue(const QueueRequest& request) {
  Digests digests(StatePaths{request.state}.digests());
  std::vector<size_t> all;
  for (const auto& plan : plan_stages(request.workflow, {request.state}, digests)) {
    if (plan.what != StagePlan::What::up_to_date) all.push_back(plan.stage);
  }
  return all;
}

void warn_of_missing_memory(const QueueRequest& request, const std::vector<size_t>& stages) {
  std::vector<std::string> names;
  for (const size_t index : stages) {
    const spec::Stage& stage = request.workflow.stages[index];
    if (shape_of(stage, request.machine).memory == 0) names.push_back(stage.name);
  }
  if (names.empty() || !request.say || request.machine.scheduler.kind != spec::SchedulerKind::pbs) return;
  request.say(text("no memory is asked for by ", base::join(names, ", "),
                   ": a site may give 1 GB and end the job beyond it; --set stages.", names[0],
                   ".resources.memory=16GB (of each node)"));
}

void check_scheduler(const spec::Machine& machine) {
  if (machine.scheduler.kind != spec::SchedulerKind::none) return;
  throw Error(Blame::user, text(machine.name, " states no scheduler: there is nobody to submit to"),
              "where it has one: --site scheduler.kind=slurm (or pbs); where not: leave --on out");
}

void check_machine(const QueueRequest& request, const std::vector<size_t>& stages) {
  const spec::Machine& machine = request.machine;
  chain::check_commands(machine);
  const auto partitions = site::read_partitions(scheduler_of(machine));
  for (const size_t stage : stages) {
    chain::check_site(machine, partitions, shape_of(request.workflow.stages[stage], machine));
  }
}

std::string submit_one(const QueueRequest& request, const spec::Stage& stage, const site::Waits& waits,
                       run::Journal& notes) {
  const auto submitted =
      chain::queue_script(StatePaths{request.state}.stage(stage.name), scheduler_of(request.machine), waits);
  if (submitted.id.empty()) {
    const Error refusal = chain::refusal_error(submitted.refusal, request.machine.scheduler);
    throw Error(refusal.blame(), text("stage '", stage.name, "': ", refusal.what()),
                text(refusal.fix(), "; what stands in the queue already stays: the same command goes on"));
  }
  Json event = Json::object();
  event["stage"] = stage.name;
  event["job"] = submitted.id;
  event["scheduler"] = site::name_of(scheduler_of(request.machine));
  notes.append("queued", event);
  notes.sync();
  return submitted.id;
}

// A job that was queued in the moment in which this program was killed is known to the scheduler alone.
std::string lost_job(const QueueRequest& request, const spec::Stage& stage, const std::optional<QueueState>& queue) {
  if (scheduler_of(request.machine) != site::SchedulerName::slurm) return "";
  if (!base::is_there(StatePaths{request.state}.script(stage.name)) || (queue && queue->live(stage.name))) return "";
  const auto jobs = site::find_jobs(site::SchedulerName::slurm, queue_name_of({request.state}, stage.name), {});
  for (const auto& job : jobs.value_or(std::vector<site::BatchJob>{})) {
    if (job.active()) return job.id;
  }
  return "";
}

// Of each stage the job in the queue that it keeps; empty: it has none. User error for one that waits for the old job
// of a stage that gets a new one: it would run on what was there before.
std::vector<std::string> jobs_to_keep(const QueueRequest& request, const std::vector<size_t>& stages,
                                      const std::optional<QueueState>& queue) {
  const auto needs = spec::stage_needs(request.workflow);
  std::vector<std::string> kept(request.workflow.stages.size());
  for (const size_t index : stages) {
    const spec::Stage& stage = request.workflow.stages[index];
    const QueuedJob* live = queue ? queue->live(stage.name) : nullptr;
    kept[index] = live ? live->job : lost_job(request, stage, queue);
    if (kept[index].empty()) continue;
    for (const size_t need : needs[index]) {
      if (std::count(stages.begin(), stages.end(), need) == 0 || !kept[need].empty()) continue;
      const bool pbs = scheduler_of(request.machine) == site::SchedulerName::pbs;
      throw Error(
          Blame::user,
          text("stage '", stage.name, "' is in the queue as job ", kept[index], ", and does not wait for stage '",
               request.workflow.stages[need].name, "', which is out of date and would be queued now"),
          text(base::shell_words({pbs ? "qdel" : "scancel", kept[index]}),
               "; then the same command queues it behind that one"));
    }
  }
  return kept;
}

}  // namespace

chain::Shape shape_of(const spec::Stage& stage, const spec::Machine& machine) {
  const spec::StageResources& wanted = stage.resources;
  const auto refuse = [&](const std::string& what, const std::string& fix) -> Error {
    return {Blame::user, text("stage '", stage.name, "': ", what), fix};
  };
  chain::Shape shape;
  shape.nodes = wanted.nodes;
  shape.gpus = wanted.gpus > 0;
  shape.ranks_per_node = shape.gpus ? wanted.gpus : wanted.ranks_per_node();
  const bool own_verb = stage.command.empty() && stage.copy.empty();
  shape.cores = wanted.cores > 0 ? wanted.cores : own_verb ? 0 : 1;
  shape.memory = wanted.memory > 0 ? wanted.memory : machine.scheduler.memory;
  shape.walltime = wanted.walltime > 0 ? wanted.walltime : machine.scheduler.walltime;
  if (shape.walltime <= 0) {
    throw refuse(text("how long may its job run? Neither it nor ", machine.name, " says"),
                 text("--set stages.", stage.name, ".resources.walltime=4:00:00"));
  }
  if (machine.scheduler.walltime > 0 && shape.walltime > machine.scheduler.walltime) {
    throw refuse(
        text("a walltime of ", base::exact_duration(shape.walltime), ": ", machine.name, " lets a job run for ",
             base::exact_duration(machine.scheduler.walltime)),
        stage.goes_on() ? "a shorter walltime, and resources.jobs: so many of them in a row" : "a shorter walltime");
  }
  if (wanted.gpus > machine.gpus_per_node) {
    throw refuse(text("it asks for ", wanted.gpus, " GPUs a node, ", machine.name, " has ", machine.gpus_per_node),
                 text("--set stages.", stage.name, ".resources.gpus=", machine.gpus_per_node));
  }
  if (machine.cores_per_node > 0 && wanted.cores > machine.cores_per_node) {
    throw refuse(text("it asks for ", wanted.cores, " cores a node, ", machine.name, " has ", machine.cores_per_node),
                 text("--set stages.", stage.name, ".resources.cores=", machine.cores_per_node));
  }
  const int64_t most = machine.scheduler.max_nodes > 0 ? machine.scheduler.max_nodes : machine.nodes;
  if (most > 0 && wanted.nodes > most) {
    throw refuse(text("it asks for ", wanted.nodes, " nodes, ", machine.name, " gives a job ", most, " at most"),
                 text("--set stages.", stage.name, ".resources.nodes=", most));
  }
  return shape;
}

std::string stage_script(const QueueRequest& request, const spec::Stage& stage) {
  return chain::batch_script(script_request(request, stage), request.machine);
}

std::vector<StageJob> dry_run(const QueueRequest& request) {
  check_scheduler(request.machine);
  const auto stages = stages_to_queue(request);
  warn_of_missing_memory(request, stages);
  std::vector<StageJob> all;
  for (const size_t stage : stages) {
    const spec::Stage& one = request.workflow.stages[stage];
    all.push_back({one.name, "", stage_script(request, one)});
  }
  return all;
}

std::vector<StageJob> queue_stages(const QueueRequest& request) {
  check_scheduler(request.machine);
  const StatePaths paths{request.state};
  chain::make_run_folder(request.state);
  const run::RunFolder held(request.state);
  check_files(request.workflow, request.document);
  const auto needs = spec::stage_needs(request.workflow);
  const auto stages = stages_to_queue(request);
  check_machine(request, stages);
  warn_of_missing_memory(request, stages);
  const auto queue = read_queue(paths);
  if (queue && !queue->answered) {
    throw Error(Blame::machine, "the scheduler does not say which of the stages are in its queue", "try again later");
  }
  auto last = jobs_to_keep(request, stages, queue);  // of each stage the job that ends with it
  run::Journal notes(paths.queue());
  ::fchmod(chain::OpenFile(paths.queue()).get(), 0644);  // whatever the umask: cancel_stages() goes by it
  std::vector<StageJob> all;
  for (const size_t index : stages) {
    const spec::Stage& stage = request.workflow.stages[index];
    if (!last[index].empty()) {
      all.push_back({stage.name, last[index], "kept"});
      continue;
    }
    chain::make_run_folder(paths.stage(stage.name));
    const auto warning = chain::warn_of_open_folder(paths.stage(stage.name), request.machine.scheduler.kind);
    if (request.say && !warning.empty()) request.say(warning);
    chain::write_script(paths.stage(stage.name), stage_script(request, stage));
    std::vector<std::string> before;
    for (const size_t need : needs[index]) {
      if (!last[need].empty()) before.push_back(last[need]);
    }
    site::Waits waits;
    if (!before.empty()) waits = {For::success_of, base::join(before, ":")};
    for (int64_t link = 0; link < stage.resources.jobs; ++link) {
      last[index] = submit_one(request, stage, waits, notes);
      all.push_back({stage.name, last[index], ""});
      waits = {For::end_of, last[index]};
    }
  }
  return all;
}

const QueuedJob* QueueState::live(const std::string& stage) const {
  const QueuedJob* found = nullptr;
  for (const auto& job : jobs) {
    if (job.stage == stage && job.seen && job.seen->active()) found = &job;
  }
  return found;
}

std::optional<QueueState> read_queue(const StatePaths& paths) {
  if (!base::is_there(paths.queue())) return std::nullopt;
  QueueState state;
  std::vector<std::string> ids;
  std::vector<std::string> names;
  for (const auto& event : run::read_journal(paths.queue()).events) {
    state.scheduler = event.string_or("scheduler", "") == "pbs" ? site::SchedulerName::pbs : site::SchedulerName::slurm;
    const std::string stage = event.at("stage").as_string();
    state.jobs.push_back({stage, event.at("job").as_string(), std::nullopt});
    ids.push_back(state.jobs.back().job);
    const std::string name = queue_name_of(paths, stage);
    if (std::count(names.begin(), names.end(), name) == 0) names.push_back(name);
  }
  if (state.jobs.empty()) return std::nullopt;
  const auto seen = site::find_jobs(state.scheduler, base::join(names, ","), ids);
  state.answered = seen.has_value();
  for (auto& job : state.jobs) {
    for (const auto& one : seen.value_or(std::vector<site::BatchJob>{})) {
      if (one.id == job.job) job.seen = one;
    }
  }
  return state;
}

std::vector<std::string> cancel_stages(const StatePaths& paths) {
  const auto queue = read_queue(paths);
  if (!queue)
    throw Error(Blame::user, "no stage of this workflow was ever queued", "lockstep workflow run --on MACHINE");
  if (!chain::OpenFile(paths.queue()).is_ours_alone()) {
    throw Error(Blame::user,
                text(paths.queue().string(), " can be written by others, who would choose your jobs that end"),
                queue->scheduler == site::SchedulerName::pbs ? "look at qstat -u $USER, then qdel JOB..."
                                                             : "look at squeue --me, then scancel JOB...");
  }
  std::vector<std::string> waiting;
  std::vector<std::string> running;
  for (const auto& job : queue->jobs) {
    const bool gone = queue->answered && (!job.seen || !job.seen->active());
    if (gone) continue;
    (job.seen && job.seen->state == site::BatchJob::State::running ? running : waiting).push_back(job.job);
  }
  // Those that wait first: the end of a running one could start them.
  if (!site::cancel_jobs(queue->scheduler, waiting) || !site::cancel_jobs(queue->scheduler, running)) {
    throw Error(Blame::machine, "the scheduler did not take the order", "try again later");
  }
  waiting.insert(waiting.end(), running.begin(), running.end());
  return waiting;
}

}  // namespace lockstep::workflow
