// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/document.h"

#include <algorithm>
#include <map>
#include <string>

#include "lockstep/base/embedded.h"
#include "lockstep/base/hash.h"
#include "lockstep/planning/assumptions.h"
#include "lockstep/planning/wording.h"
#include "lockstep/version.h"

namespace lockstep::planning {
namespace {

using forecast::MemoryClass;
using forecast::Option;

constexpr size_t kMostCurves = 12;  // options; with more, only the best ones carry their memory curve
constexpr size_t kMostPoints = 160;

// By its name, in the order of the classes.
template <class Class, class Value>
spec::Named<Value> named(const std::map<Class, Value>& by_class) {
  spec::Named<Value> all;
  for (const auto& [kind, value] : by_class) all.emplace_back(name_of(kind), value);
  return all;
}

// Columns, not rows: the names of the classes once, then their bytes at each sampled event. The peak survives.
spec::Named<std::vector<int64_t>> curve_of(const std::vector<forecast::MemoryPoint>& curve) {
  const auto total = [](const forecast::MemoryPoint& point) {
    int64_t sum = 0;
    for (const int64_t bytes : point.by_class) sum += bytes;
    return sum;
  };
  std::vector<int64_t> events;
  const auto names = choices_of(MemoryClass{});
  std::vector<std::vector<int64_t>> columns(names.size());
  const size_t bins = std::min(kMostPoints, curve.size());
  for (size_t b = 0; b < bins; ++b) {
    const auto from = curve.begin() + static_cast<int64_t>(b * curve.size() / bins);
    const auto to = curve.begin() + static_cast<int64_t>((b + 1) * curve.size() / bins);
    const auto highest = std::max_element(from, to, [&](const auto& x, const auto& y) { return total(x) < total(y); });
    events.push_back(highest->event);
    for (size_t c = 0; c < names.size(); ++c) columns[c].push_back(highest->by_class[c]);
  }
  spec::Named<std::vector<int64_t>> all{{"event", std::move(events)}};
  for (size_t c = 0; c < names.size(); ++c) {
    const bool used = std::any_of(columns[c].begin(), columns[c].end(), [](int64_t bytes) { return bytes != 0; });
    if (used) all.emplace_back(names[c], std::move(columns[c]));
  }
  return all;
}

spec::PlanMemory memory_of(const Option& option, bool with_curve) {
  const forecast::MemoryForecast& memory = option.trial.memory;
  spec::PlanMemory all{.peak_reserved = memory.peak_reserved,
                       .peak_allocated = memory.peak_allocated,
                       .cold_peak_reserved = memory.cold_peak_reserved,
                       .fragmentation = memory.fragmentation,
                       .context = memory.context,
                       .nccl = memory.nccl,
                       .total = memory.total,
                       .capacity = option.trial.capacity,
                       .by_class = named(memory.by_class),
                       .moment = memory.moment,
                       .largest = {},
                       .curve = {}};
  for (const auto& block : memory.largest) all.largest.push_back({block.bytes, name_of(block.memory), block.born_by});
  if (with_curve) all.curve = curve_of(memory.curve);
  return all;
}

spec::PlanHostMemory host_of(const forecast::HostMemory& host) {
  return {.total = host.total,
          .processes = host.processes,
          .pinned = host.pinned,
          .loader = host.loader,
          .features = host.features,
          .staged = host.staged,
          .checkpoint = host.weights};
}

spec::PlanStep step_of(const forecast::Interval& step) {
  return {.value = step.value, .low = step.low, .high = step.high};
}

void add_phases(const Plan& plan, const Option& option, spec::PlanOption& all) {
  for (const forecast::PhaseTrial& phase : option.trial.phases) {
    spec::PlanPhase& one = all.phases.emplace_back();
    one.name = plan.workload.phases[phase.phase].name;
    one.memory = phase.memory;
    one.features = phase.fill;
    if (phase.time) one.step_seconds = step_of(phase.time->step);
  }
}

void add_time(const Option& option, spec::PlanOption& all) {
  if (!option.trial.time) return;
  const forecast::TimeForecast& time = *option.trial.time;
  all.step_seconds = step_of(time.step);
  all.basis = name_of(time.step.basis);
  all.samples_per_second = option.samples_per_second;
  all.time_by_class = named(time.by_class);
  all.time = {.device = time.device,
              .host = time.host,
              .communication = time.communication,
              .exposed = time.exposed,
              .compute_bound_share = time.compute_bound_share,
              .host_bound = time.host_bound};
}

void add_length(const Option& option, spec::PlanOption& all) {
  all.walltime_seconds = option.pace.walltime;
  all.start_up_seconds = option.pace.start_up;
  const forecast::Spread spread = option.machine_option.gpu ? forecast::kStartUpGpu : forecast::kStartUpCpu;
  all.start_up_low_seconds = option.pace.start_up * spread.low;
  all.start_up_high_seconds = option.pace.start_up * spread.high;
  all.save_seconds = option.pace.save;
  all.restore_seconds = option.pace.restore;
  if (!option.length) return;
  const forecast::Length& length = *option.length;
  all.steps = length.steps;
  if (length.steps_per_epoch > 0) {
    all.steps_per_epoch = length.steps_per_epoch;
    all.last_batch = length.last_batch;
    all.epoch_seconds = length.epoch;
  }
  if (length.jobs > 0) all.total_seconds = length.total;
  all.jobs = length.jobs;
  all.evaluations = length.num_evaluations;
  all.evaluation_seconds = length.evaluations;
  all.saves = length.num_saves;
  all.saves_at_most = length.most_saves;
  all.saves_seconds = length.saves;
}

std::optional<double> if_positive(double value) {
  return value > 0 ? std::optional(value) : std::nullopt;
}

spec::PlanLoader loader_of(const Option& option) {
  return {.per_core = option.loader->per_core,
          .cores_needed = option.loader->cores_needed,
          .read_rate_needed = option.read_rate_wanted(),
          .samples_per_second = if_positive(option.pace.loader_rate),
          .bound = option.length ? std::optional(option.length->loader_bound) : std::nullopt};
}

spec::PlanCost cost_of(const Option& option) {
  const forecast::Costs& costs = option.costs;
  spec::PlanCost all{.gpu_hours = costs.gpu_hours,
                     .node_hours = costs.node_hours,
                     .core_hours = if_positive(costs.core_hours),
                     .kwh = option.energy ? std::optional(costs.kwh) : std::nullopt,
                     .amount = {},
                     .currency = {},
                     .bills = {}};
  if (const forecast::Bill* bill = costs.cheapest_rent()) {
    all.amount = bill->amount;
    all.currency = bill->unit;
  }
  for (const auto& bill : costs.bills) {
    all.bills.push_back(
        {bill.kind, bill.payee, bill.amount, bill.unit, bill.rule, bill.source, bill.date, if_positive(bill.limit_h)});
  }
  return all;
}

spec::PlanLevers levers_of(const Option& option) {
  return {.precision = option.levers.precision,
          .recompute = option.levers.recompute,
          .zero = option.levers.zero,
          .rows = option.trial.rows,
          .micro_batch = option.trial.micro_batch,
          .accumulation = option.trial.passes};
}

void add_energy(const Option& option, const forecast::PowerRules& rules, spec::PlanOption& all) {
  if (!option.energy) return;
  all.energy_joules = option.energy->joules;
  all.energy = {.device_joules = option.energy->device_joules,
                .node_joules = option.energy->node_joules,
                .device_watts = option.energy->device_watts,
                .pue = rules.overhead,
                .node_watts = rules.node_watts};
}

spec::PlanOption option_of(const Plan& plan, const Option& option, bool with_curve) {
  spec::PlanOption all;
  all.machine = option.machine_option.name;
  all.title = label_of(option);
  if (option.machine_option.gpu) all.gpu = option.machine_option.gpu->id;
  if (option.machine_option.cpu) all.cpu = option.machine_option.cpu->id;
  all.gpus = option.machine_option.gpus;
  all.nodes = option.machine_option.nodes();
  all.as_written = option.as_written;
  all.set = option.changes;
  all.fits = option.trial.fits;
  all.feasible = option.feasible();
  all.drivable = option.drivable;
  if (!option.drivable) all.last_cuda.emplace(option.machine_option.gpu->last_cuda);
  all.memory = memory_of(option, with_curve);
  all.host_memory = host_of(option.host);
  add_time(option, all);
  add_phases(plan, option, all);
  add_length(option, all);
  all.disk_bytes = disk_bytes(plan, option);
  if (option.loader) all.loader = loader_of(option);
  add_energy(option, plan.assumptions.power, all);
  if (option.length) all.cost = cost_of(option);
  all.levers = levers_of(option);
  if (!option.as_written) all.job = changed_job(plan, option);
  all.why = option.why;
  return all;
}

spec::PlanBest find_best(const forecast::Best& best) {
  const auto index = [](int64_t i) { return i < 0 ? std::nullopt : std::optional(i); };
  return {index(best.fastest), index(best.cheapest), index(best.smallest), best.cheapest_by};
}

}  // namespace

spec::Plan document_of(const Plan& plan) {
  spec::Plan all;
  all.version = LOCKSTEP_VERSION;
  all.commit = base::build_commit();
  all.name = plan.recorded ? plan.title : plan.job.name;
  all.headline = headline(plan);
  all.recorded = plan.recorded;
  if (!plan.recorded) {
    all.job = plan.job;
    all.job_sha256 = base::sha256_hex(spec::to_json(plan.job).dump());
  }
  all.model = plan.title;
  all.parameters = plan.parameters;
  all.checkpoint_bytes = plan.checkpoint_bytes;
  all.description = description(plan);
  all.best = find_best(plan.best);
  for (size_t i = 0; i < plan.options.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    const bool best = index == plan.best.fastest || index == plan.best.cheapest || index == plan.best.smallest;
    all.options.push_back(option_of(plan, plan.options[i], best || plan.options.size() <= kMostCurves));
  }
  all.notes = plan.notes;
  for (const auto& row : list_assumptions(plan.assumptions)) all.assumptions.emplace_back(row.key, row.value);
  all.timing = {plan.trace_seconds, plan.forecast_seconds, plan.num_traced};
  return all;
}

base::Json to_json(const Plan& plan) {
  return spec::to_json(document_of(plan));
}

}  // namespace lockstep::planning
