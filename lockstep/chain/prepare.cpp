// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/prepare.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/chain/refusal.h"
#include "lockstep/run/folder.h"
#include "lockstep/run/identity.h"
#include "lockstep/site/batch.h"
#include "lockstep/site/command.h"
#include "lockstep/site/machine_here.h"
#include "lockstep/site/partitions.h"
#include "lockstep/site/pbs_start.h"
#include "lockstep/site/probe.h"
#include "lockstep/spec/rank_rules.h"
#include "lockstep/spec/study.h"

namespace lockstep::chain {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr double kShortestJob = 60;  // Slurm counts in minutes

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

// What training would refuse after the time in the queue. The plan of processors is of one rank, and a plan of GPUs
// speaks of options that are its own.
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

// A folder that most sites have on every node, each its own: a job there cannot even open its output.
std::string node_local_folder(const base::Path& run) {
  const auto whole = [](const base::Path& path) {
    std::error_code unresolved;
    const base::Path resolved = std::filesystem::weakly_canonical(path, unresolved);
    return ((unresolved ? path.lexically_normal() : resolved) / "").string();
  };
  const char* told = std::getenv("TMPDIR");
  for (const std::string_view folder : {"/tmp", "/var/tmp", "/dev/shm", told ? told : ""}) {
    if (!folder.empty() && whole(run).starts_with(whole(folder))) return std::string(folder);
  }
  return "";
}

// Asking for no more than a run needs starts it earlier; a plan may be wrong by a third, and the chain goes on anyway.
double choose_walltime(const SubmitRequest& request, const PlannedShape& planned, double limit) {
  constexpr double kGrain = 600;
  if (request.walltime > 0 || planned.seconds <= 0) return limit;
  return std::min(limit, std::ceil((1.5 * planned.seconds + kGrain) / kGrain) * kGrain);
}

// The plan's figure is of the program's own bytes; libraries, the page tables and the file cache, which some sites
// count, come on top. Never more than a node has, where the plan says that it fits. 0: not known.
int64_t choose_memory(const SubmitRequest& request, const PlannedShape& planned, int64_t ranks_per_node) {
  constexpr int64_t kExtra = int64_t{1} << 30;
  const spec::Machine& machine = request.machine;
  if (machine.scheduler.memory > 0) return machine.scheduler.memory;
  if (planned.memory <= 0) return 0;
  const int64_t needed = planned.memory + (ranks_per_node - 1) * planned.rank_memory;
  const int64_t wanted = needed + needed / 4 + kExtra;
  return machine.memory_per_node >= needed ? std::min(wanted, machine.memory_per_node) : wanted;
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

Candidate candidate_of(const SubmitRequest& request, const std::string& device, int64_t nodes,
                       const PlannedShape& planned, double limit) {
  Candidate candidate;
  candidate.planned = planned;
  ScriptRequest& script = candidate.script;
  script.name = queue_name(request.run);
  script.folder = request.folder;
  script.run = request.run;
  if (request.work.empty()) script.job = request.run / "submitted.json";
  script.work = request.work;
  script.program = request.program;
  script.device = device;
  script.shape.nodes = nodes;
  script.shape.gpus = device == "cuda";
  script.shape.ranks_per_node = choose_ranks_per_node(request, device);
  script.shape.walltime = choose_walltime(request, planned, limit);
  script.shape.memory = choose_memory(request, planned, script.shape.ranks_per_node);
  script.commands = commands_folder(request.machine);
  script.file_mask = read_file_mask();
  return candidate;
}

site::Prospect ask_pbs(const Shape& shape, const spec::Machine& machine) {
  const NodeRequest node = node_request(shape, machine);
  return site::ask_pbs_start({.queue = machine.scheduler.partition,
                              .nodes = shape.nodes,
                              .cores = node.cores,
                              .gpus = node.gpus,
                              .memory = node.memory,
                              .whole_nodes = machine.scheduler.exclusive_nodes});
}

void ask_starts(std::vector<Candidate>& candidates, const spec::Machine& machine) {
  const base::TemporaryFolder folder;
  const base::Path file = folder.path() / "submit.sh";
  for (auto& candidate : candidates) {
    base::write_file(file, batch_script(candidate.script, machine));
    const bool slurm = machine.scheduler.kind == spec::SchedulerKind::slurm;
    const site::Prospect prospect = slurm ? site::ask_start(file) : ask_pbs(candidate.script.shape, machine);
    if (prospect.start) candidate.start = static_cast<double>(*prospect.start);
    candidate.refusal = prospect.refusal;
  }
}

// Why nobody can say how fast the processors of this machine are; empty: they are in the catalogue.
std::string unknown_processor(const spec::Machine& machine, const catalogue::Catalogue& catalogue) {
  const auto& known = catalogue.cpus;
  const bool there = std::any_of(known.begin(), known.end(), [&](const auto& row) { return row.id == machine.cpu; });
  if (there) return "";
  const std::string what = machine.cpu.empty() ? text(machine.name, " does not state its processor (--site cpu=NAME)")
                                               : text("the catalogue has no processor '", machine.cpu,
                                                      "' (a row in ~/.config/lockstep/catalogue/cpus.json adds it)");
  return text(what, "; --hours NODES=HOURS says how long it takes");
}

// Whether training would take the job at all does not depend on the processor: asked with one that is known. How long
// it takes does, and is left out.
Planned plan_for_faults(PlanQuestion question, const std::string& unknown, const catalogue::Catalogue& catalogue) {
  const auto& rows = catalogue.cpus;
  const auto known = std::find_if(rows.begin(), rows.end(), [](const catalogue::Cpu& row) {
    return row.cores && row.base_ghz && row.fp32_flops_per_cycle && row.bandwidth_gbs;
  });
  if (known != rows.end()) {
    question.machine.cpu = known->id;
    Planned asked = ask_plan(question);
    if (asked.is_users_fault) return asked;
  }
  Planned none;
  none.why_not = unknown;
  return none;
}

Planned planned_of(const SubmitRequest& request, const catalogue::Catalogue& catalogue, const std::string& device,
                   double limit) {
  if (!request.hours.empty()) return parse_hours(request.hours, limit);
  if (!request.plan || !request.work.empty()) return {};
  PlanQuestion question{request.program, request.job, request.machine, request.nodes, limit};
  if (device == "cpu") {
    question.machine.gpu.clear();
    question.machine.gpus_per_node = 0;
    const std::string unknown = unknown_processor(request.machine, catalogue);
    if (!unknown.empty()) return plan_for_faults(question, unknown, catalogue);
  } else {
    question.machine.gpus_per_node = choose_ranks_per_node(request, device);  // the GPUs that the job asks for
  }
  return ask_plan(question);
}

std::vector<Candidate> candidates_of(const SubmitRequest& request, const std::string& device, const Planned& planned,
                                     double limit) {
  std::vector<Candidate> all;
  std::string why;
  for (const int64_t nodes : request.nodes) {
    PlannedShape shape;
    shape.nodes = nodes;
    if (const PlannedShape* found = planned.of(nodes)) shape = *found;
    if (planned.of(nodes) && !shape.feasible) {
      why += text(why.empty() ? "" : "; ", nodes, nodes == 1 ? " node: " : " nodes: ", shape.why_not);
    } else {
      all.push_back(candidate_of(request, device, nodes, shape, limit));
    }
  }
  if (all.empty()) {
    throw Error(
        Blame::user, text("the plan says that this cannot work on ", request.machine.name, ": ", why),
        "what would: lockstep plan JOB --on MACHINE; or a longer --walltime; --no-plan submits it all the same");
  }
  return all;
}

void set_lengths(const SubmitRequest& request, Prepared& prepared) {
  const int64_t planned = request.links > 0 ? request.links : prepared.choice().planned.jobs;
  ChainTerms& terms = prepared.terms;
  terms.planned_links = planned;
  terms.max_links = request.max_links;
  if (terms.max_links == 0) terms.max_links = planned > 0 ? std::max(2 * planned, planned + 5) : 50;
  terms.patience = request.patience;
  if (terms.max_links < planned) {
    prepared.notes.push_back(text("the chain ends after ", terms.max_links, " of about ", planned,
                                  " jobs (--max-links): the run will not be done; submit it again to go on"));
  }
  if (terms.submit_from == spec::SubmitFrom::job) return;
  if (planned == 0) {
    throw Error(Blame::user, "how many links shall be queued? The plan does not say",
                "--links N: the expected number of jobs and one or two to spare");
  }
  // A dead node or a slow start costs a link: two to spare, or a tenth. --links is meant as it stands.
  prepared.queue_now = request.links > 0 ? request.links : planned + std::max<int64_t>(2, planned / 10);
  terms.max_links = request.max_links > 0 ? request.max_links : prepared.queue_now;
  prepared.queue_now = std::min(prepared.queue_now, terms.max_links);
}

void add_notes(const SubmitRequest& request, const Shape& shape, std::vector<std::string>& notes) {
  const spec::Scheduler& scheduler = request.machine.scheduler;
  if (const auto asked = walltime_words(shape.walltime, scheduler.kind);
      request.walltime > 0 && asked != base::exact_duration(request.walltime)) {
    notes.push_back(text("a walltime of ", base::exact_duration(request.walltime), " is asked for as ", asked, ": ",
                         name_of(scheduler.kind), " counts in minutes"));
  }
  if (struct stat status{}; scheduler.kind == spec::SchedulerKind::slurm && ::stat(request.run.c_str(), &status) == 0 &&
                            (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    notes.push_back(text("others can write to ", request.run.string(),
                         ", and Slurm follows a link that somebody puts there for its output: chmod go-w ",
                         base::shell_path(request.run.string())));
  }
  if (scheduler.kind == spec::SchedulerKind::pbs && shape.memory == 0) {
    notes.push_back(
        "no memory is asked for, since no plan says how much: a site may give 1 GB and end the job beyond it; "
        "--site scheduler.memory=16GB (of each node)");
  }
}

}  // namespace

std::optional<double> Candidate::end() const {
  if (!start || planned.seconds <= 0) return std::nullopt;
  return *start + planned.seconds;
}

spec::Machine find_machine(const std::string& word, const std::vector<std::string>& sites,
                           const catalogue::Catalogue& catalogue) {
  const bool file = word.ends_with(".json") || word.find('/') != std::string::npos;
  base::Json document;
  if (file) {
    document = base::read_json(word);
  } else if (word == "here") {
    document = spec::changed_json(site::describe_machine(site::probe_site(), catalogue, ""));
  } else {
    document = spec::changed_json(catalogue::to_machine(catalogue.machine(word, "--on")));
    document.set_position({}, text("the catalogue's ", word));
  }
  spec::Machine machine = spec::parse_machine(document, sites);
  catalogue::check_machine(machine, catalogue, document);
  return machine;
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

base::Path collection_folder(const std::vector<std::string>& predict) {
  std::string to;
  for (size_t i = 0; i < predict.size(); ++i) {
    const std::string& word = predict[i];
    if (word.starts_with("--to=")) to = word.substr(5);
    if (word == "--to" && i + 1 < predict.size()) to = predict[i + 1];
    const std::string option = word.substr(0, word.find('='));
    if (option == "--ranks" || option == "--device") {
      throw Error(Blame::user, text(option, " behind `predict`: what a job gets is for submit to say"),
                  "--nodes, --ranks-per-node and --device before the --");
    }
    if (option == "--again") {
      throw Error(Blame::user, "--again in a chain: each job would begin again",
                  "remove the results file and its .files folder, then submit it without --again");
    }
  }
  if (!to.ends_with(".jsonl")) {
    throw Error(Blame::user, "a chain goes on with a collection, and there is none: no --to FILE.jsonl",
                "lockstep submit --on MACHINE -- predict RUN FOLDER --to found.jsonl");
  }
  return std::filesystem::absolute(base::Path(to).replace_extension(".files")).lexically_normal();
}

base::Path study_folder(const std::vector<std::string>& tune) {
  std::string to;
  std::string document;
  for (size_t i = 0; i < tune.size() && tune[i] != "--"; ++i) {
    const std::string& word = tune[i];
    const std::string option = word.substr(0, word.find('='));
    const bool has_value = word.find('=') != std::string::npos;
    if (option == "--workers" || option == "--device") {
      throw Error(Blame::user, text(option, " behind `tune`: what a job gets is for submit to say"),
                  "--nodes, --ranks-per-node (trials at once on a node) and --device before the --");
    }
    if (option == "--best" || option == "--report" || option == "--measure") {
      throw Error(Blame::user, text(option, " in a chain: it is done at once"), text("lockstep tune STUDY ", option));
    }
    const bool takes_value =
        option == "--to" || option == "--set" || option == "--out" || option == "--json" || option == "--partition";
    const std::string value = has_value ? word.substr(option.size() + 1) : i + 1 < tune.size() ? tune[i + 1] : "";
    if (option == "--to") to = value;
    if (option == "--partition") document = value;
    if (takes_value && !has_value) ++i;
    if (!word.starts_with("--") && document.empty()) document = word;
  }
  if (document.empty()) {
    throw Error(Blame::user, "a chain of `tune`: which study?", "lockstep submit --on MACHINE -- tune study.json");
  }
  if (to.empty()) to = text("studies/", spec::load_study(document).name);
  const base::Path folder = std::filesystem::absolute(to).lexically_normal();
  return folder.has_filename() ? folder : folder.parent_path();
}

size_t ends_first(const std::vector<Candidate>& candidates) {
  size_t best = candidates.size();
  std::string why;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const auto end = candidates[i].end();
    if (end && (best == candidates.size() || *end < *candidates[best].end())) best = i;
    if (end) continue;
    const std::string& note = candidates[i].planned.note;
    const std::string reason = !candidates[i].refusal.empty() ? in_one_line(candidates[i].refusal)
                               : note.empty()                 ? "its run time is not known"
                                                              : text("its run time is not known: ", note);
    why += text(why.empty() ? "" : "; ", candidates[i].script.shape.nodes, " nodes: ", reason);
  }
  if (best < candidates.size()) return best;
  throw Error(Blame::user, text("--earliest: of no shape can the end be told: ", why),
              "give the hours of each by hand, --hours 1=2.5,2=1.4, or choose with --nodes alone");
}

Prepared prepare(const SubmitRequest& request, const catalogue::Catalogue& catalogue) {
  const spec::Machine& machine = request.machine;
  const bool slurm = machine.scheduler.kind == spec::SchedulerKind::slurm;
  if (machine.scheduler.kind == spec::SchedulerKind::none) {
    throw Error(Blame::user, text(machine.name, " states no scheduler: there is nobody to submit to"),
                "where it has one: --site scheduler.kind=slurm (or pbs); where not: lockstep train");
  }
  const std::string device = checked_device(request, catalogue);
  check_nodes(request);
  if (request.work.empty()) check_ranks(request, choose_ranks_per_node(request, device));
  const double limit = walltime_limit(request);
  const char* command = slurm ? "sbatch" : "qstat";
  if (request.earliest && !site::find_on_path(command)) {
    throw Error(
        Blame::machine,
        text("--earliest asks ", command, " when a job would start, and it is not on PATH: this is not the login ",
             "node of ", machine.name),
        "log in there, or choose with --nodes N alone");
  }
  Prepared prepared;
  std::vector<site::Partition> partitions;
  if (!request.dry_run) {
    check_commands(machine);
    partitions = site::read_partitions(slurm ? site::SchedulerName::slurm : site::SchedulerName::pbs);
    Shape least;  // before the plan, which takes its time
    least.nodes = *std::min_element(request.nodes.begin(), request.nodes.end());
    least.ranks_per_node = choose_ranks_per_node(request, device);
    least.gpus = device == "cuda";
    least.walltime = limit;
    least.memory = machine.scheduler.memory;
    if (const std::string warning = check_site(machine, partitions, least); !warning.empty()) {
      prepared.notes.push_back(text("WARNING: ", warning));
    }
  }
  check_run(request);
  const Planned planned = planned_of(request, catalogue, device, limit);
  if (planned.shapes.empty() && planned.is_users_fault) {
    throw Error(Blame::user, text("the job would fail after its time in the queue: ", planned.why_not),
                "correct the job; --no-plan submits it all the same");
  }
  if (planned.shapes.empty() && !planned.why_not.empty()) {
    prepared.notes.push_back(text("not planned: ", planned.why_not));
  }
  if (const std::string folder = node_local_folder(request.run); !folder.empty()) {
    prepared.notes.push_back(text("WARNING: ", request.run.string(), " is in ", folder,
                                  ", which at most sites each node has to itself: jobs would end before they begin; "
                                  "--run on a file system that the nodes share"));
  }
  prepared.candidates = candidates_of(request, device, planned, limit);
  for (const auto& candidate : prepared.candidates) {
    const PlannedShape& shape = candidate.planned;
    if (shape.note.empty()) continue;
    prepared.notes.push_back(
        text(shape.nodes, " nodes: ", shape.seconds > 0 ? "" : "run time not known: ", shape.note,
             shape.seconds > 0 || !request.earliest ? "" : text("; or --hours ", shape.nodes, "=HOURS")));
  }
  if (request.earliest || (slurm && !request.dry_run)) ask_starts(prepared.candidates, machine);
  if (request.earliest) prepared.chosen = ends_first(prepared.candidates);
  const Candidate& choice = prepared.choice();
  check_site(machine, partitions, choice.script.shape);
  add_notes(request, choice.script.shape, prepared.notes);
  prepared.script = batch_script(choice.script, machine);
  prepared.terms.name = choice.script.name;
  prepared.terms.scheduler = slurm ? site::SchedulerName::slurm : site::SchedulerName::pbs;
  prepared.terms.submit_from = machine.submit_from;
  prepared.terms.walltime = choice.script.shape.walltime;
  prepared.terms.promised_start = choice.start;
  prepared.terms.promised_end = choice.end();
  set_lengths(request, prepared);
  return prepared;
}

}  // namespace lockstep::chain
