// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/prepare.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/chain/refusal.h"
#include "lockstep/chain/request_checks.h"
#include "lockstep/site/command.h"
#include "lockstep/site/machine_here.h"
#include "lockstep/site/partitions.h"
#include "lockstep/site/probe.h"
#include "lockstep/spec/study.h"

namespace lockstep::chain {
namespace {

using base::Blame;
using base::Error;
using base::text;

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
  if (auto warning = warn_of_open_folder(request.run, scheduler.kind); !warning.empty()) {
    notes.push_back(std::move(warning));
  }
  if (scheduler.kind == spec::SchedulerKind::pbs && shape.memory == 0) {
    notes.push_back(
        "no memory is asked for, since no plan says how much: a site may give 1 GB and end the job beyond it; "
        "--site scheduler.memory=16GB (of each node)");
  }
}

}  // namespace

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
