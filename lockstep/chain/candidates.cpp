// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/candidates.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/chain/chain.h"
#include "lockstep/chain/refusal.h"
#include "lockstep/chain/request_checks.h"
#include "lockstep/site/batch.h"
#include "lockstep/site/pbs_start.h"

namespace lockstep::chain {
namespace {

using base::Blame;
using base::Error;
using base::text;

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
  add_surroundings(script, request.machine);
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

}  // namespace

std::optional<double> Candidate::end() const {
  if (!start || planned.seconds <= 0) return std::nullopt;
  return *start + planned.seconds;
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

}  // namespace lockstep::chain
