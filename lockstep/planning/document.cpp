// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/document.h"

#include <algorithm>
#include <string>

#include "lockstep/base/embedded.h"
#include "lockstep/base/hash.h"
#include "lockstep/planning/assumptions.h"
#include "lockstep/planning/wording.h"
#include "lockstep/version.h"

namespace lockstep::planning {
namespace {

using base::Json;
using forecast::MemoryClass;
using forecast::Option;

constexpr size_t kMostCurves = 12;  // options; with more, only the best ones carry their memory curve
constexpr size_t kMostPoints = 160;

Json by_class_json(const std::map<MemoryClass, int64_t>& by_class) {
  Json all = Json::object();
  for (const auto& [kind, bytes] : by_class) all[name_of(kind)] = bytes;
  return all;
}

// Columns, not rows: the names of the classes once, then their bytes at each sampled event. The peak survives.
Json curve_json(const std::vector<forecast::MemoryPoint>& curve) {
  const auto total = [](const forecast::MemoryPoint& point) {
    int64_t sum = 0;
    for (const int64_t bytes : point.by_class) sum += bytes;
    return sum;
  };
  Json events = Json::array();
  const auto names = choices_of(MemoryClass{});
  std::vector<Json> columns(names.size(), Json::array());
  const size_t bins = std::min(kMostPoints, curve.size());
  for (size_t b = 0; b < bins; ++b) {
    const auto from = curve.begin() + static_cast<int64_t>(b * curve.size() / bins);
    const auto to = curve.begin() + static_cast<int64_t>((b + 1) * curve.size() / bins);
    const auto highest = std::max_element(from, to, [&](const auto& x, const auto& y) { return total(x) < total(y); });
    events.push_back(highest->event);
    for (size_t c = 0; c < names.size(); ++c) columns[c].push_back(highest->by_class[c]);
  }
  Json all = Json::object();
  all["event"] = std::move(events);
  for (size_t c = 0; c < names.size(); ++c) {
    const auto& items = columns[c].items();
    const bool used = std::any_of(items.begin(), items.end(), [](const Json& item) { return item.as_int() != 0; });
    if (used) all[names[c]] = std::move(columns[c]);
  }
  return all;
}

Json memory_json(const Option& option, bool with_curve) {
  const forecast::MemoryForecast& memory = option.trial.memory;
  Json all = Json::object();
  all["peak_reserved_bytes"] = memory.peak_reserved;
  all["peak_allocated_bytes"] = memory.peak_allocated;
  all["cold_peak_reserved_bytes"] = memory.cold_peak_reserved;
  all["fragmentation_bytes"] = memory.fragmentation;
  all["context_bytes"] = memory.context;
  all["nccl_bytes"] = memory.nccl;
  all["total_bytes"] = memory.total;
  all["capacity_bytes"] = option.trial.capacity;
  all["by_class"] = by_class_json(memory.by_class);
  all["moment"] = memory.moment;
  Json largest = Json::array();
  for (const auto& block : memory.largest) {
    Json row = Json::object();
    row["bytes"] = block.bytes;
    row["class"] = name_of(block.memory);
    row["born_by"] = block.born_by;
    largest.push_back(std::move(row));
  }
  all["largest"] = std::move(largest);
  if (with_curve) all["curve"] = curve_json(memory.curve);
  return all;
}

Json host_json(const forecast::HostMemory& host) {
  Json all = Json::object();
  all["total_bytes_per_node"] = host.total;
  all["processes_bytes"] = host.processes;
  all["pinned_bytes"] = host.pinned;
  all["loader_bytes"] = host.loader;
  all["features_bytes"] = host.features;
  all["staged_bytes"] = host.staged;
  all["checkpoint_bytes"] = host.weights;
  return all;
}

void add_time(const Option& option, Json& all) {
  for (const char* key : {"step_seconds", "basis", "samples_per_second", "time_by_class", "time"}) all[key] = Json();
  if (!option.trial.time) return;
  const forecast::TimeForecast& time = *option.trial.time;
  Json step = Json::object();
  step["value"] = time.step.value;
  step["low"] = time.step.low;
  step["high"] = time.step.high;
  all["step_seconds"] = std::move(step);
  all["basis"] = name_of(time.step.basis);
  all["samples_per_second"] = option.samples_per_second;
  Json by_class = Json::object();
  for (const auto& [kind, seconds] : time.by_class) by_class[name_of(kind)] = seconds;
  all["time_by_class"] = std::move(by_class);
  Json parts = Json::object();
  parts["device_seconds"] = time.device;
  parts["host_seconds"] = time.host;
  parts["communication_seconds"] = time.communication;
  parts["exposed_seconds"] = time.exposed;
  parts["compute_bound_share"] = time.compute_bound_share;
  parts["host_bound"] = time.host_bound;
  all["time"] = std::move(parts);
}

void add_length(const Option& option, Json& all) {
  for (const char* key : {"steps", "steps_per_epoch", "last_batch", "epoch_seconds", "total_seconds", "jobs"}) {
    all[key] = Json();
  }
  all["walltime_seconds"] = option.pace.walltime;
  all["start_up_seconds"] = option.pace.start_up;
  all["save_seconds"] = option.pace.save;
  all["restore_seconds"] = option.pace.restore;
  if (!option.length) return;
  const forecast::Length& length = *option.length;
  all["steps"] = length.steps;
  if (length.steps_per_epoch > 0) {
    all["steps_per_epoch"] = length.steps_per_epoch;
    all["last_batch"] = length.last_batch;
    all["epoch_seconds"] = length.epoch;
  }
  if (length.jobs > 0) all["total_seconds"] = length.total;
  all["jobs"] = length.jobs;
  all["evaluations"] = length.num_evaluations;
  all["evaluation_seconds"] = length.evaluations;
  all["saves"] = length.num_saves;
  all["saves_at_most"] = length.most_saves;
  all["saves_seconds"] = length.saves;
}

Json loader_json(const Option& option) {
  Json all = Json::object();
  all["per_core"] = option.loader->per_core;
  all["cores_needed"] = option.loader->cores_needed;
  all["read_rate_needed"] = option.read_rate_wanted();
  all["samples_per_second"] = option.pace.loader_rate > 0 ? Json(option.pace.loader_rate) : Json();
  all["bound"] = option.length ? Json(option.length->loader_bound) : Json();
  return all;
}

Json bill_json(const forecast::Bill& bill) {
  Json row = Json::object();
  row["kind"] = bill.kind;
  row["payee"] = bill.payee;
  row["amount"] = bill.amount;
  row["unit"] = bill.unit;
  row["rule"] = bill.rule;
  row["source"] = bill.source;
  row["date"] = bill.date;
  if (bill.limit_h > 0) row["session_limit_hours"] = bill.limit_h;
  return row;
}

Json cost_json(const Option& option) {
  Json all = Json::object();
  if (!option.length) return all;
  const forecast::Costs& costs = option.costs;
  all["gpu_hours"] = costs.gpu_hours;
  all["node_hours"] = costs.node_hours;
  all["core_hours"] = costs.core_hours > 0 ? Json(costs.core_hours) : Json();
  all["kwh"] = option.energy ? Json(costs.kwh) : Json();
  if (const forecast::Bill* bill = costs.cheapest_rent()) {
    all["amount"] = bill->amount;
    all["currency"] = bill->unit;
  }
  Json bills = Json::array();
  for (const auto& bill : costs.bills) bills.push_back(bill_json(bill));
  all["bills"] = std::move(bills);
  return all;
}

Json energy_json(const Option& option, const forecast::PowerRules& rules) {
  if (!option.energy) return Json();
  Json all = Json::object();
  all["device_joules"] = option.energy->device_joules;
  all["node_joules"] = option.energy->node_joules;
  all["device_watts"] = option.energy->device_watts;
  all["pue"] = rules.overhead;
  all["node_watts"] = rules.node_watts;
  return all;
}

Json levers_json(const Option& option) {
  Json all = Json::object();
  all["precision"] = option.levers.precision;
  all["recompute"] = Json::array_of(option.levers.recompute);
  all["zero"] = option.levers.zero;
  all["rows"] = option.trial.rows;
  all["micro_batch"] = option.trial.micro_batch;
  all["accumulation"] = option.trial.passes;
  return all;
}

Json option_json(const Plan& plan, const Option& option, bool with_curve) {
  Json all = Json::object();
  all["machine"] = option.place.name;
  all["title"] = label_of(option);
  all["gpu"] = option.place.gpu ? Json(option.place.gpu->id) : Json();
  all["cpu"] = option.place.cpu ? Json(option.place.cpu->id) : Json();
  all["gpus"] = option.place.gpus;
  all["nodes"] = option.place.nodes();
  all["as_written"] = option.as_written;
  all["set"] = Json::array_of(option.changes);
  all["fits"] = option.trial.fits;
  all["feasible"] = option.feasible();
  all["drivable"] = option.drivable;
  if (!option.drivable) {
    all["last_cuda"] = option.place.gpu->last_cuda ? Json(*option.place.gpu->last_cuda) : Json();
  }
  all["memory"] = memory_json(option, with_curve);
  all["host_memory"] = host_json(option.host);
  add_time(option, all);
  add_length(option, all);
  all["disk_bytes"] = disk_bytes(plan, option);
  all["loader"] = option.loader ? loader_json(option) : Json();
  all["energy_joules"] = option.energy ? Json(option.energy->joules) : Json();
  all["energy"] = energy_json(option, plan.assumptions.power);
  all["cost"] = cost_json(option);
  all["levers"] = levers_json(option);
  if (!option.as_written) all["job"] = spec::changed_json(changed_job(plan, option));
  all["why"] = Json::array_of(option.why);
  return all;
}

Json best_json(const Plan& plan) {
  Json all = Json::object();
  const auto index = [](int64_t i) { return i < 0 ? Json() : Json(i); };
  all["fastest"] = index(plan.best.fastest);
  all["cheapest"] = index(plan.best.cheapest);
  all["smallest"] = index(plan.best.smallest);
  all["cheapest_by"] = plan.best.cheapest_by;
  return all;
}

}  // namespace

Json to_json(const Plan& plan) {
  Json all = Json::object();
  all["format"] = "lockstep plan 1";
  all["version"] = LOCKSTEP_VERSION;
  all["commit"] = std::string(base::build_commit());
  const Json job = spec::to_json(plan.job);
  all["name"] = plan.recorded ? plan.title : plan.job.name;
  all["headline"] = headline(plan);
  all["recorded"] = plan.recorded;
  all["job"] = plan.recorded ? Json() : job;
  all["job_sha256"] = plan.recorded ? Json() : Json(base::sha256_hex(job.dump()));
  all["model"] = plan.title;
  all["parameters"] = plan.parameters;
  all["checkpoint_bytes"] = plan.checkpoint_bytes;
  all["description"] = description(plan);
  all["best"] = best_json(plan);
  Json options = Json::array();
  for (size_t i = 0; i < plan.options.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    const bool best = index == plan.best.fastest || index == plan.best.cheapest || index == plan.best.smallest;
    options.push_back(option_json(plan, plan.options[i], best || plan.options.size() <= kMostCurves));
  }
  all["options"] = std::move(options);
  all["notes"] = Json::array_of(plan.notes);
  Json assumed = Json::object();
  for (const auto& row : list_assumptions(plan.assumptions)) assumed[row.key] = row.value;
  all["assumptions"] = std::move(assumed);
  Json timing = Json::object();
  timing["trace_seconds"] = plan.trace_seconds;
  timing["forecast_seconds"] = plan.forecast_seconds;
  timing["traces"] = plan.num_traced;
  all["timing"] = std::move(timing);
  return all;
}

}  // namespace lockstep::planning
