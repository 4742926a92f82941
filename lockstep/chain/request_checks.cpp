// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/request_checks.h"

#include <algorithm>
#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/chain/chain.h"
#include "lockstep/run/folder.h"
#include "lockstep/run/identity.h"
#include "lockstep/site/batch.h"
#include "lockstep/spec/rank_rules.h"

namespace lockstep::chain {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr double kShortestJob = 60;  // Slurm counts in minutes

void check_chain(const SubmitRequest& request) {
  if (!has_chain(request.run) || request.dry_run) return;
  const Chain chain = read_chain(request.run);
  const auto jobs = site::find_jobs(chain.terms.scheduler, chain.terms.name, chain.queued);
  if (!jobs) {
    throw Error(Blame::machine, "the scheduler does not say whether this run's earlier chain still lives",
                "try again later");
  }
  for (const auto& job : *jobs) {
    if (!job.active()) continue;
    throw Error(Blame::user, text(request.run.string(), ": its chain lives, job ", job.id, " is ", job.said),
                text("lockstep submit --status ", base::shell_path(request.run.string()), ", or --cancel it first"));
  }
}

// Whether it is `tune --partition`; what stands behind -- is the program's.
bool is_partition_work(const std::vector<std::string>& work) {
  if (work.empty() || work.front() != "tune") return false;
  const auto own = std::find(work.begin(), work.end(), "--");
  return std::any_of(work.begin(), own,
                     [](const std::string& word) { return word == "--partition" || word.starts_with("--partition="); });
}

}  // namespace

std::string checked_device(const SubmitRequest& request, const catalogue::Catalogue& catalogue) {
  const spec::Machine& machine = request.machine;
  std::string device = !request.device.empty() ? request.device : machine.gpus_per_node > 0 ? "cuda" : "cpu";
  if (device == "cpu") return device;
  if (device != "cuda") throw Error(Blame::user, text("--device ", device), "cpu or cuda");
  if (machine.gpus_per_node == 0) {
    throw Error(Blame::user, text("--device cuda: ", machine.name, " states no GPUs"),
                "--device cpu, or --site gpu=NAME --site gpus_per_node=N");
  }
  const catalogue::Gpu& gpu = catalogue.gpu(machine.gpu, machine.name);
  // Volta and Pascal: libtorch built with CUDA 12 drives them, the one we install does not. Who has it says so.
  const bool by_cuda_12 = gpu.last_cuda && gpu.last_cuda->starts_with("12.");
  if (gpu.planning_only() && !(by_cuda_12 && request.device == "cuda")) {
    throw Error(Blame::user,
                text(machine.name, " has the GPU ", gpu.name, ", which no current CUDA drives",
                     gpu.last_cuda ? text(" (the last was ", *gpu.last_cuda, ")") : "", ": jobs there would fail"),
                text(by_cuda_12 ? "--device cuda where libtorch was built with CUDA 12.6 (README); " : "",
                     "--device cpu trains on its processors; `lockstep plan JOB --on all` shows other machines"));
  }
  return device;
}

double walltime_limit(const SubmitRequest& request) {
  const double machine = request.machine.scheduler.walltime;
  const double job = request.job.limits.walltime;
  if (request.walltime > 0 && machine > 0 && request.walltime > machine) {
    throw Error(Blame::user,
                text("--walltime ", base::exact_duration(request.walltime), ": ", request.machine.name,
                     " lets a job run for ", base::exact_duration(machine)),
                text("--walltime ", base::exact_duration(machine), " or less; the chain needs more links then"));
  }
  double limit = request.walltime > 0 ? request.walltime : job;
  if (request.walltime <= 0 && machine > 0) limit = job > 0 ? std::min(job, machine) : machine;
  if (limit <= 0) {
    throw Error(Blame::user, text("how long may a job run? Neither the job nor ", request.machine.name, " says"),
                "--walltime 24:00:00, or --site scheduler.walltime=24:00:00");
  }
  if (limit < kShortestJob) {
    throw Error(Blame::user, text("a walltime of ", base::exact_duration(limit), " is too short for a job"),
                "give a minute at least; one that starts, trains a step and saves needs more");
  }
  return limit;
}

void check_nodes(const SubmitRequest& request) {
  const spec::Machine& machine = request.machine;
  const int64_t most = machine.scheduler.max_nodes > 0 ? machine.scheduler.max_nodes : machine.nodes;
  for (const int64_t nodes : request.nodes) {
    if (nodes < 1) throw Error(Blame::user, text("--nodes ", nodes), "give 1 or more");
    if (most > 0 && nodes > most) {
      throw Error(Blame::user, text("--nodes ", nodes, ": ", machine.name, " gives a job ", most, " at most"),
                  text("--nodes ", most, " or fewer"));
    }
  }
  if (request.nodes.size() > 1 && !request.earliest) {
    throw Error(Blame::user, "--nodes names several numbers", "--earliest chooses among them, or name one");
  }
  if (request.nodes.front() > 1 && is_partition_work(request.work)) {
    throw Error(Blame::user, text("--nodes ", request.nodes.front(), ": one process keeps the points of a partition"),
                "--nodes 1, with --ranks-per-node N for so many of its programs at once");
  }
}

int64_t choose_ranks_per_node(const SubmitRequest& request, const std::string& device) {
  const spec::Machine& machine = request.machine;
  if (device != "cuda") {
    return request.ranks_per_node > 0 ? request.ranks_per_node : std::max<int64_t>(1, machine.sockets_per_node);
  }
  if (request.ranks_per_node > machine.gpus_per_node) {
    throw Error(Blame::user,
                text("--ranks-per-node ", request.ranks_per_node, ": ", machine.name, " has ", machine.gpus_per_node,
                     machine.gpus_per_node == 1 ? " GPU" : " GPUs", " a node, and a rank has one"),
                text("--ranks-per-node ", machine.gpus_per_node, " or fewer"));
  }
  return request.ranks_per_node > 0 ? request.ranks_per_node : machine.gpus_per_node;
}

void check_ranks(const SubmitRequest& request, int64_t ranks_per_node) {
  for (const int64_t nodes : request.nodes) {
    try {
      spec::check_batch_on_ranks(request.job.training, nodes * ranks_per_node);
    } catch (const Error& error) {
      throw Error(Blame::user,
                  text(nodes, nodes == 1 ? " node of " : " nodes of ", ranks_per_node,
                       ranks_per_node == 1 ? " rank: " : " ranks: ", error.what()),
                  text(error.fix(), "; the ranks are --nodes times --ranks-per-node"));
    }
  }
}

void check_run(const SubmitRequest& request) {
  if (const std::string key = other_job(request.run, request.job); !key.empty()) {
    throw Error(Blame::user, text(request.run.string(), " is the run of another job: ", key),
                "submit the same job, or name another folder: --run OTHER_FOLDER");
  }
  check_chain(request);
  if (const auto holder = run::read_holder(request.run)) {
    throw Error(Blame::user,
                text(request.run.string(), ": process ", holder->pid, " on host ", holder->host, " works in it"),
                "wait for it, end it, or name another folder: --run OTHER_FOLDER");
  }
}

std::string other_job(const base::Path& run, const spec::Job& job) {
  const base::Path file = run::RunPaths{run}.job();
  if (!std::filesystem::exists(file)) return "";
  const spec::Job before = spec::load_job(file);
  const auto differs = [](const char* key, const std::string& was, const std::string& is) {
    return was == is ? "" : text(key, " was '", was, "', now '", is, "'");
  };
  std::string found = differs("name", before.name, job.name);
  if (found.empty()) found = differs("data.train", before.data.train, job.data.train);
  if (!found.empty()) return found;
  spec::Job now = job;  // as training settles it: classes and order may be left to the data
  if (now.model.classes == 0) now.model.classes = before.model.classes;
  if (now.data.order == spec::SampleOrder::by_storage) now.data.order = before.data.order;
  return run::difference(run::identity(before, "", ""), run::identity(now, "", ""));
}

}  // namespace lockstep::chain
