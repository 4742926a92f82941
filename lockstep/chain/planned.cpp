// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/planned.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/chain/refusal.h"
#include "lockstep/forecast/collective.h"
#include "lockstep/forecast/limits.h"
#include "lockstep/site/command.h"

namespace lockstep::chain {
namespace {

using base::text;

void replace_all(std::string& words, const std::string& from, const std::string& to) {
  for (size_t at = words.find(from); at != std::string::npos; at = words.find(from, at + to.size())) {
    words.replace(at, from.size(), to);
  }
}

PlannedShape shape_of(const spec::PlanOption& option) {
  PlannedShape shape;
  shape.nodes = std::max<int64_t>(1, option.nodes);
  shape.feasible = option.feasible;
  shape.seconds = option.total_seconds.value_or(0);
  shape.jobs = option.jobs.value_or(0);
  shape.memory = option.gpus > 0 ? option.host_memory.total : option.memory.total;
  if (option.gpus == 0) {
    shape.rank_memory = option.host_memory.total;
    for (const auto& [name, bytes] : option.memory.by_class) {
      const bool split = name == "activations" || name == "inputs" || name == "workspaces";
      shape.rank_memory += split ? 0 : bytes;
    }
  }
  if (!shape.feasible) shape.why_not = option.why.empty() ? "the plan says it does not fit" : option.why.front();
  return shape;
}

// The option of one node whose processors compute; null: the plan has none that would end.
const spec::PlanOption* one_node_option(const spec::Plan& plan) {
  const auto found = std::find_if(plan.options.begin(), plan.options.end(), [](const spec::PlanOption& option) {
    return option.nodes == 1 && option.gpus == 0 && option.step_seconds && option.total_seconds.value_or(0) > 0;
  });
  return found == plan.options.end() ? nullptr : &*found;
}

// Jobs and seconds from what the plan of one node has measured out for its parts.
PlannedShape estimated(const spec::PlanOption& option, int64_t nodes, double all_reduce, double walltime) {
  const auto share = static_cast<double>(nodes);
  forecast::RunAmount work;
  work.span.steps = option.steps.value_or(0);
  work.save_every = 0;
  forecast::Pace pace;
  // Evaluations, and the saves beside the last, are spread over the steps.
  const double others = option.evaluation_seconds.value_or(0) / share +
                        std::max(0.0, option.saves_seconds.value_or(0) - option.save_seconds);
  pace.step = option.step_seconds->value / share + all_reduce +
              others / static_cast<double>(std::max<int64_t>(1, work.span.steps));
  pace.start_up = option.start_up_seconds;
  pace.restore = option.restore_seconds;
  pace.save = option.save_seconds;
  pace.walltime = walltime > 0 ? walltime : option.walltime_seconds;
  PlannedShape shape = shape_of(option);
  shape.nodes = nodes;
  shape.feasible = true;
  shape.why_not.clear();
  shape.seconds = 0;
  shape.jobs = 0;
  const auto length = forecast::estimate_length(work, pace);
  if (!length || length->jobs == 0) {
    shape.note = "in no job of this walltime would a step be saved";
    return shape;
  }
  shape.seconds = length->total;
  shape.jobs = length->jobs;
  return shape;
}

// What the catalogue does not know of a GPU is no fault of the job: it can be queued, for a time that nobody knows.
void admit_unknown_speed(const spec::Plan& plan, const spec::Machine& machine, Planned& planned) {
  for (const auto& option : plan.options) {
    const bool node_fits = machine.memory_per_node == 0 || option.host_memory.total <= machine.memory_per_node;
    if (!option.fits || !node_fits || option.step_seconds || option.gpus == 0) continue;
    for (auto& shape : planned.shapes) {
      if (shape.nodes != std::max<int64_t>(1, option.nodes) || shape.feasible) continue;
      shape.feasible = true;
      shape.why_not.clear();
      shape.note = text("how fast ", option.gpu.value_or("its GPU"),
                        " is does not stand in the catalogue; a row in ~/.config/lockstep/catalogue/gpus.json adds it");
    }
  }
}

}  // namespace

const PlannedShape* Planned::of(int64_t nodes) const {
  const auto found =
      std::find_if(shapes.begin(), shapes.end(), [&](const PlannedShape& shape) { return shape.nodes == nodes; });
  return found == shapes.end() ? nullptr : &*found;
}

Planned parse_shapes(const spec::Plan& plan) {
  Planned planned;
  for (const auto& option : plan.options) {
    const PlannedShape shape = shape_of(option);
    const auto known = std::find_if(planned.shapes.begin(), planned.shapes.end(),
                                    [&](const PlannedShape& other) { return other.nodes == shape.nodes; });
    if (known == planned.shapes.end()) {
      planned.shapes.push_back(shape);
    } else if (shape.feasible && (!known->feasible || shape.seconds < known->seconds)) {
      *known = shape;
    }
  }
  return planned;
}

void estimate_nodes(const spec::Plan& plan, const PlanQuestion& question, Planned& planned) {
  const spec::Machine& machine = question.machine;
  if (machine.gpus_per_node > 0) return;
  const spec::PlanOption* one = one_node_option(plan);
  const double gradient = question.job.training.reduce_precision == spec::ReducePrecision::bf16 ? 2 : 4;  // bytes each
  for (const int64_t nodes : question.nodes) {
    if (nodes == 1 || planned.of(nodes)) continue;
    PlannedShape shape;
    shape.nodes = nodes;
    shape.feasible = true;
    if (!one) {
      shape.note = "the plan of one node, from which it would be estimated, has no run time";
    } else if (machine.links.inter.rate <= 0) {
      shape.note = text("the link between the nodes of ", machine.name,
                        " is not stated: --site links.inter.rate=12.5GB/s (one direction of a node)");
    } else {
      forecast::Network network;
      network.ranks = network.nodes = nodes;
      network.inter_rate = machine.links.inter.rate;
      network.inter_latency = machine.links.inter.latency;
      const double all_reduce = forecast::mpi_collective_seconds(
          forecast::CollectiveKind::all_reduce, gradient * static_cast<double>(plan.parameters), network);
      shape = estimated(*one, nodes, all_reduce, question.walltime);
      if (shape.seconds > 0) {
        shape.note = text("an estimate: the steps of one node shared by ", nodes, ", and ",
                          base::format_duration(all_reduce), " a step for the sum of the gradients, not hidden");
      }
    }
    planned.shapes.push_back(std::move(shape));
  }
}

Planned ask_plan(const PlanQuestion& question) {
  const base::TemporaryFolder folder;
  const base::Path job = folder.path() / "job.json";
  const base::Path machine = folder.path() / "machine.json";
  const base::Path answer = folder.path() / "plan.json";
  base::write_json(job, spec::changed_json(question.job));
  spec::save_machine(machine, question.machine);
  // Only the job as written: the chain trains that one.
  std::vector<std::string> words{question.program, "plan",        job.string(), "--on",
                                 machine.string(), "--no-search", "--json",     answer.string()};
  if (question.machine.gpus_per_node > 0) {
    std::vector<std::string> counts;
    for (const int64_t nodes : question.nodes) counts.push_back(text(nodes * question.machine.gpus_per_node));
    words.insert(words.end(), {"--gpus", base::join(counts, ",")});
  }
  if (question.walltime > 0) {
    words.insert(words.end(), {"--set", text("limits.walltime=", base::exact_duration(question.walltime))});
  }
  const site::Answer said = site::ask(words, std::chrono::minutes(10));
  const bool is_users_fault = said.code == static_cast<int>(base::Blame::user);
  Planned planned;
  // With exit code 3 (nothing fits) the document is there as well: it has the reasons.
  if (std::filesystem::exists(answer)) {
    const spec::Plan plan = spec::load_plan(answer);
    planned = parse_shapes(plan);
    if (!is_users_fault) admit_unknown_speed(plan, question.machine, planned);
    estimate_nodes(plan, question, planned);
  }
  if (!said.good()) {
    planned.is_users_fault = is_users_fault;
    planned.why_not = said.code == -1 ? "lockstep plan did not answer within 10 minutes" : in_one_line(said.err);
    // The user has never seen the two files that were made for the question.
    replace_all(planned.why_not, machine.string(), question.machine.name);
    replace_all(planned.why_not, job.string(), "the job");
  }
  return planned;
}

Planned parse_hours(const std::string& words, double walltime) {
  Planned planned;
  for (const auto& item : base::split(words, ',')) {
    char* end = nullptr;
    const long long nodes = std::strtoll(item.c_str(), &end, 10);
    const bool begun = nodes > 0 && *end == '=';
    char* last = nullptr;
    const double hours = begun ? std::strtod(end + 1, &last) : 0;
    if (!begun || *last != '\0' || !std::isfinite(hours) || hours <= 0) {
      throw base::Error(base::Blame::user, text("--hours: '", item, "' is not NODES=HOURS"), "--hours 1=2.5,2=1.4");
    }
    PlannedShape shape;
    shape.nodes = nodes;
    shape.feasible = true;
    shape.seconds = hours * 3600;
    shape.jobs = walltime > 0 ? static_cast<int64_t>(std::ceil(shape.seconds / walltime)) : 1;
    planned.shapes.push_back(shape);
  }
  return planned;
}

}  // namespace lockstep::chain
