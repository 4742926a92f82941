// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/cpu_or_gpu.h"

#include <algorithm>

#include "lockstep/advice/beside.h"
#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/planning/fastest.h"
#include "lockstep/planning/request.h"
#include "lockstep/planning/wording.h"

namespace lockstep::advice {
namespace {

using base::Align;
using base::Json;
using base::text;
using forecast::Option;

// "If you are seeing 2-3 times performance gains, CPU can be enough": the rule that newcomers are taught.
constexpr double kCpuIsEnough = 3;
constexpr double kGiga = 1e9;

// The two sides: a processor, and every GPU in its fastest form.
struct Sides {
  const planning::Plan& plan;
  const std::vector<catalogue::Offer>& offers;
  const Option* cpu = nullptr;
  std::vector<const Option*> gpus = {};
  const Option* best = nullptr;  // the fastest GPU; null: none would end

  std::vector<const Option*> all() const {
    std::vector<const Option*> both{cpu};
    both.insert(both.end(), gpus.begin(), gpus.end());
    return both;
  }
  double speed_up(const Option& option) const { return planning::run_seconds(*cpu) / planning::run_seconds(option); }
};

Sides choose_sides(const planning::Plan& plan, const std::vector<catalogue::Offer>& offers) {
  Sides sides{plan, offers};
  for (const Option* option : planning::fastest_of_each_machine_option(plan)) {
    if (!option->machine_option.gpu) {
      if (!sides.cpu) sides.cpu = option;
      continue;
    }
    sides.gpus.push_back(option);
    if (!option->feasible()) continue;
    // What today's CUDA drives comes before what is only faster.
    const auto rank = [](const Option& one) { return std::pair(!one.drivable, planning::run_seconds(one)); };
    if (!sides.best || rank(*option) < rank(*sides.best)) sides.best = option;
  }
  if (!sides.cpu || sides.gpus.empty()) {
    throw base::Error(base::Blame::user,
                      text("--advise cpu-or-gpu compares both; --on names no ", sides.cpu ? "GPU" : "processor"),
                      "for example --on i7-8700,t4,colab, or leave --on out");
  }
  return sides;
}

std::string named(const Option& option) {
  const std::string changed = planning::changes_text(option);
  return changed.empty() ? planning::label_of(option) : text(planning::label_of(option), " (", changed, ")");
}

double bandwidth_of(const Option& option) {
  const auto& machine_option = option.machine_option;
  return kGiga * (machine_option.gpu ? machine_option.gpu->bandwidth_gbs.value_or(0)
                                     : machine_option.cpu->bandwidth_gbs.value_or(0));
}

double bandwidth_share(const Option& option) {
  return option.trial.time ? 1 - option.trial.time->compute_bound_share : 0;
}

// What a sample's way forward and back computes, from the traced step.
double operations_of_step(const planning::Plan& plan) {
  double flops = 0;
  const auto& recording = *plan.recording;
  for (const auto* op : forecast::last_step_operators(recording)) flops += op->flops;
  const auto traced = static_cast<double>(recording.micro_batch * recording.accumulation);
  return traced > 0 ? flops * static_cast<double>(plan.workload.work.global_batch) / traced : flops;
}

void tell_bandwidth(const Sides& sides, Paper& paper, Json& document) {
  const double operations = operations_of_step(sides.plan);
  paper.heading("Memory bandwidth");
  paper.say(text("A step of ", sides.plan.workload.work.global_batch, " samples takes ",
                 base::format_short_count(operations),
                 " operations. What it moves, in the precision of its row, cannot take less than the memory bandwidth "
                 "allows."));
  Paper::Grid grid{{{"device"},
                    {"memory bandwidth", Align::right},
                    {"a step moves", Align::right},
                    {"which takes at least", Align::right},
                    {"a step", Align::right},
                    {"bound by bandwidth", Align::right}},
                   {},
                   ""};
  for (const Option* option : sides.all()) {
    const double rate = bandwidth_of(*option);
    const bool known = option->trial.time.has_value();
    grid.rows.push_back({named(*option), rate > 0 ? base::format_rate(rate) : "not stated",
                         known ? base::format_bytes(option->trial.time->bytes) : "-",
                         known && rate > 0 ? base::format_duration(option->trial.time->bytes / rate) : "-",
                         known ? base::format_duration(option->trial.time->step.value) : "-",
                         known ? base::percent(bandwidth_share(*option), 0) : "-"});
  }
  paper.table(std::move(grid));
  document["step_flops"] = operations;
}

std::string cores_there(const Option& option) {
  if (!option.machine_option.gpu) return "all train";
  return option.machine_option.named && option.machine_option.machine.cores_per_node > 0
             ? text(option.machine_option.machine.cores_per_node)
             : "not stated";
}

std::string loader_verdict(const Option& option) {
  if (!option.loader || !option.machine_option.gpu) return "-";
  if (option.length && option.length->loader_bound) {
    return text("too slow: ", base::fixed(option.pace.loader_rate, 0), " samples/s");
  }
  return option.pace.loader_rate > 0 ? "keeps up" : "with that many";
}

void tell_data(const Sides& sides, Paper& paper, Json& document) {
  const auto& plan = sides.plan;
  const auto& size = plan.assumptions.sample;
  const double bytes = static_cast<double>(plan.workload.work.samples) * size.stored_bytes;
  paper.heading("Dataset size");
  if (!plan.workload.decodes) {
    paper.say("The samples are not images that a loader decodes: the data feed either device.");
    return;
  }
  paper.say(plan.workload.work.samples == 0
                ? "The number of samples is not known: --samples N."
                : text(base::format_count(plan.workload.work.samples), " images of ",
                       base::format_bytes(size.stored_bytes), " (--assume sample_bytes=...) are ",
                       base::format_bytes(bytes), ": they ", bytes <= 8 * kGiga ? "stay" : "do not stay",
                       " in the memory of a machine with 13 GB after the first epoch."));
  Paper::Grid grid{{{"device"},
                    {"samples/s it takes", Align::right},
                    {"cores to decode them", Align::right},
                    {"cores there", Align::right},
                    {"loader"}},
                   {},
                   ""};
  for (const Option* option : sides.all()) {
    grid.rows.push_back({named(*option), base::fixed(option->samples_per_second, 0),
                         option->loader ? base::fixed(option->loader->cores_needed, 1) : "-", cores_there(*option),
                         loader_verdict(*option)});
  }
  paper.table(std::move(grid));
  document["dataset_bytes"] = bytes;
}

void tell_classes(const Sides& sides, Paper& paper) {
  const Option& gpu = sides.best ? *sides.best : *sides.gpus.front();
  if (!sides.cpu->trial.time || !gpu.trial.time) return;
  std::vector<std::pair<double, forecast::OperatorClass>> order;
  for (const auto& [kind, seconds] : sides.cpu->trial.time->by_class) order.emplace_back(seconds, kind);
  std::sort(order.rbegin(), order.rend());
  Paper::Grid grid{{{"what"},
                    {planning::label_of(*sides.cpu), Align::right},
                    {named(gpu), Align::right},
                    {"times faster", Align::right}},
                   {},
                   "Where the step's time goes (seconds on the device)"};
  for (const auto& [seconds, kind] : order) {
    const auto found = gpu.trial.time->by_class.find(kind);
    const double there = found == gpu.trial.time->by_class.end() ? 0 : found->second;
    if (seconds < 0.01 * sides.cpu->trial.time->device || there == 0) continue;
    grid.rows.push_back({name_of(kind), base::format_duration(seconds), base::format_duration(there),
                         planning::figure(seconds / there)});
  }
  if (!grid.rows.empty()) paper.table(std::move(grid));
}

void tell_optimization(const Sides& sides, Paper& paper, Json& document) {
  paper.heading("Optimization");
  paper.say(
      text("A GPU with a gain of 2 to 3 is not worth the trouble: that is the rule. Of the step everything runs "
           "on the GPU; the processor decodes and launches. The gain is of the whole run, start-up and "
           "evaluation counted."));
  Paper::Grid grid{
      {{"device"}, {"precisions"}, {"a step", Align::right}, {"run", Align::right}, {"times faster", Align::right}},
      {},
      ""};
  Json rows = Json::array();
  for (const Option* option : sides.all()) {
    const catalogue::Gpu* gpu = option->machine_option.gpu ? &*option->machine_option.gpu : nullptr;
    const auto precisions = forecast::precisions_for(gpu, choices_of(spec::Precision{}));
    const bool ends = option->feasible();
    grid.rows.push_back({named(*option), base::join(precisions, ", "),
                         option->trial.time ? base::format_duration(option->trial.time->step.value) : "-",
                         ends ? planning::run_text(*option) : "does not fit",
                         ends ? planning::figure(sides.speed_up(*option)) : "-"});
    Json row = Json::object();
    row["device"] = planning::label_of(*option);
    row["changes"] = planning::changes_text(*option);
    row["fits"] = ends;
    row["drivable"] = option->drivable;
    row["seconds"] = planning::run_seconds(*option);
    row["speed_up"] = ends ? Json(sides.speed_up(*option)) : Json();
    row["jobs"] = option->length ? option->length->jobs : 0;
    row["kwh"] = option->energy ? Json(option->costs.kwh) : Json();
    row["step_bytes"] = option->trial.time ? Json(option->trial.time->bytes) : Json();
    row["step_seconds"] = option->trial.time ? Json(option->trial.time->step.value) : Json();
    row["bandwidth_bound_share"] = bandwidth_share(*option);
    row["loader_bound"] = option->length && option->length->loader_bound;
    rows.push_back(std::move(row));
  }
  paper.table(std::move(grid));
  tell_classes(sides, paper);
  document["devices"] = std::move(rows);
}

const forecast::Bill* bill_of_kind(const Option& option, const char* kind) {
  for (const auto& bill : option.costs.bills) {
    if (bill.kind == kind) return &bill;
  }
  return nullptr;
}

// A machine that somebody lends for nothing: the offer has the machine's name.
const catalogue::Offer* free_offer(const Sides& sides, const Option& option) {
  for (const auto& offer : sides.offers) {
    if (offer.id == option.machine_option.name && offer.usd_per_gpu_hour == 0.0) return &offer;
  }
  return nullptr;
}

std::string sessions_text(const Option& option) {
  if (option.pace.walltime <= 0 || !option.length) return "-";
  return text(option.length->jobs, " of ", planning::time_text(option.pace.walltime));
}

void tell_cost(const Sides& sides, Paper& paper) {
  paper.heading("Cost");
  Paper::Grid grid{{{"device"},
                    {"run", Align::right},
                    {"energy", Align::right},
                    {"electricity", Align::right},
                    {"cheapest rent", Align::right},
                    {"sessions", Align::right}},
                   {},
                   ""};
  std::vector<std::string> sources;
  const catalogue::Offer* told = nullptr;
  for (const Option* option : sides.all()) {
    const forecast::Bill* rent = option->costs.cheapest_rent();
    const forecast::Bill* electricity = bill_of_kind(*option, "electricity");
    if (rent) {
      sources.push_back(text(planning::label_of(*option), ": ", rent->rule, " = ", planning::figure(rent->amount), " ",
                             rent->unit, ", ", rent->payee.empty() ? "provider not named" : rent->payee, "; ",
                             rent->source, ", ", rent->date));
    } else if (const catalogue::Offer* gift = free_offer(sides, *option); gift && gift != told) {
      sources.push_back(text(option->machine_option.name, ": ", gift->notes, "; at most ",
                             gift->session_limit_h.value_or(0), " h a session; ", gift->source, ", ", gift->date));
      told = gift;
    }
    const bool ends = option->feasible() && option->length;
    grid.rows.push_back({named(*option), planning::run_text(*option),
                         ends && option->energy ? text(planning::figure(option->costs.kwh), " kWh") : "-",
                         electricity ? text(planning::figure(electricity->amount), " ", electricity->unit) : "-",
                         rent && ends                 ? text(planning::figure(rent->amount), " ", rent->unit)
                         : free_offer(sides, *option) ? "free"
                                                      : "-",
                         sessions_text(*option)});
  }
  paper.table(std::move(grid));
  const auto& power = sides.plan.assumptions.power;
  sources.push_back(text("energy at the meter: ", power.node_watts, " W beside the device, times ", power.overhead,
                         " for the building (--assume node_watts=..., pue=...)",
                         sides.plan.assumptions.kwh > 0 ? "" : "; --assume kwh=0.30GBP makes money of it"));
  paper.list(std::move(sources));
}

std::string cost_words(const Sides& sides) {
  const Option* cheapest = nullptr;
  std::vector<std::string> words;
  for (const Option* option : sides.gpus) {
    if (!option->feasible() || !option->length) continue;
    const forecast::Bill* rent = option->costs.cheapest_rent();
    if (rent && (!cheapest || rent->amount < cheapest->costs.cheapest_rent()->amount)) cheapest = option;
    if (free_offer(sides, *option) && words.empty()) {
      words.push_back(text("free on ", planning::label_of(*option), " in ", planning::run_text(*option), " (",
                           sessions_text(*option), ")"));
    }
  }
  if (cheapest) {
    const forecast::Bill* rent = cheapest->costs.cheapest_rent();
    words.push_back(
        text("rented for ", planning::figure(rent->amount), " ", rent->unit, " on ", planning::label_of(*cheapest)));
  }
  if (sides.cpu->energy && sides.best && sides.best->energy) {
    words.push_back(text(planning::figure(sides.cpu->costs.kwh), " kWh on the processor, ",
                         planning::figure(sides.best->costs.kwh), " on the GPU"));
  }
  return words.empty() ? "" : text("; ", base::join(words, "; "));
}

std::string verdict(const Sides& sides) {
  const std::string cpu = planning::label_of(*sides.cpu);
  if (!sides.best) {
    return sides.cpu->feasible()
               ? text("CPU: none of the GPUs takes this job, ", cpu, " does in ", planning::run_text(*sides.cpu))
               : "Neither: the job fits no device of these; lockstep plan --on all shows every GPU.";
  }
  if (!sides.cpu->feasible()) return text("GPU: the job does not fit ", cpu, cost_words(sides), ".");
  const double gain = sides.speed_up(*sides.best);
  const std::string figures = text(named(*sides.best), " takes ", planning::run_text(*sides.best), ", ", cpu, " takes ",
                                   planning::run_text(*sides.cpu), ": ", planning::figure(gain), " times faster");
  if (gain <= kCpuIsEnough) return text("CPU is enough: ", figures, ", not more than ", kCpuIsEnough, ".");
  return text("GPU: ", figures, cost_words(sides), ".");
}

}  // namespace

Advice cpu_or_gpu(const planning::Plan& plan, const std::vector<catalogue::Offer>& offers) {
  const Sides sides = choose_sides(plan, offers);
  Advice advice;
  advice.document = Json::object();
  advice.document["kind"] = "advice";
  advice.document["advice"] = "cpu-or-gpu";
  advice.paper.title = text("CPU or GPU? ", plan.title);
  for (const auto& line : planning::undriven(plan)) advice.paper.say(line + ".");
  advice.document["verdict"] = verdict(sides);
  advice.paper.say(verdict(sides));
  advice.paper.say(text("The job: ", planning::description(plan), "."));
  tell_bandwidth(sides, advice.paper, advice.document);
  tell_data(sides, advice.paper, advice.document);
  tell_optimization(sides, advice.paper, advice.document);
  tell_cost(sides, advice.paper);
  if (!plan.notes.empty()) advice.paper.list(plan.notes);
  return advice;
}

Advice advise_cpu_or_gpu(const AdviceRequest& request) {
  planning::RequestWords words;
  words.on = planning::words_of(request.arguments, "--on");
  if (words.on.empty()) words.on = {"cpu", "t4", "l4", "rtx3090", "colab"};
  const auto is_processor = [&](const std::string& word) {
    const auto& cpus = request.catalogue.cpus;
    return word == "cpu" || std::any_of(cpus.begin(), cpus.end(), [&](const auto& row) { return row.id == word; });
  };
  if (std::none_of(words.on.begin(), words.on.end(), is_processor)) words.on.insert(words.on.begin(), "cpu");
  planning::PlanRequest asked = planning::request_of(request.arguments, request.catalogue, words);
  asked.tracer = request.tracer;
  const planning::Plan plan = planning::make_plan(asked, request.catalogue, request.calibration);
  Advice advice = cpu_or_gpu(plan, request.catalogue.clouds);
  if (const auto file = request.arguments.value("--beside")) add_beside(read_beside(*file), plan, advice);
  return advice;
}

}  // namespace lockstep::advice
