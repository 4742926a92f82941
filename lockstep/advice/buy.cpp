// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/buy.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>

#include "lockstep/advice/beside.h"
#include "lockstep/advice/buy_claims.h"
#include "lockstep/advice/buy_paper.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/planning/fastest.h"
#include "lockstep/planning/request.h"
#include "lockstep/planning/wording.h"

namespace lockstep::advice {
namespace {

using base::Blame;
using base::Error;
using base::text;
using forecast::MachineOption;
using forecast::Option;

constexpr double kGigabyte = 1e9;
constexpr double kSystemGb = 8;  // of main memory, beside the jobs
constexpr double kTie = 0.01;    // builds so near in time are as good; the cheaper one wins

std::string machine_option_name(const Build& build, bool alone) {
  return text(build.name(), alone ? ", one GPU" : ", all GPUs");
}

// A GPU of the build with its share of the cores, or all GPUs with all of them.
MachineOption machine_option_of(const Build& build, const catalogue::Catalogue& catalogue, bool alone) {
  MachineOption machine_option;
  machine_option.name = machine_option_name(build, alone);
  machine_option.named = true;
  machine_option.gpu = catalogue.gpu(*build.gpu->part.gpu);
  machine_option.cpu = catalogue.cpu(*build.cpu->part.cpu);
  machine_option.gpus = alone ? 1 : build.gpus;
  machine_option.per_node = build.gpus;
  machine_option.machine.name = machine_option.name;
  machine_option.machine.gpu = machine_option.gpu->id;
  machine_option.machine.gpus_per_node = build.gpus;
  machine_option.machine.cpu = machine_option.cpu->id;
  machine_option.machine.sockets_per_node = 1;
  const int64_t cores = machine_option.cpu->cores.value_or(0);
  machine_option.machine.cores_per_node = alone ? std::max<int64_t>(1, cores / build.gpus) : cores;
  return machine_option;
}

double hours_of(const Option& option) {
  return option.feasible() && option.length ? option.length->total / planning::kSecondsPerHour : 0;
}

PlannedJob plan_job(const std::string& file, const std::vector<Build>& builds, const AdviceRequest& request) {
  planning::PlanRequest asked =
      planning::request_of(request.arguments, request.catalogue, {.job = file, .on = {*builds.front().gpu->part.gpu}});
  asked.machine_options.clear();
  for (const auto& build : builds) {
    asked.machine_options.push_back(machine_option_of(build, request.catalogue, true));
    if (build.gpus > 1 && build.gpus <= asked.job.training.global_batch) {
      asked.machine_options.push_back(machine_option_of(build, request.catalogue, false));
    }
  }
  asked.tracer = request.tracer;
  PlannedJob job{file, planning::make_plan(asked, request.catalogue, request.calibration), {}};
  if (job.plan.workload.work.samples == 0 && job.plan.workload.work.span.steps == 0) {
    throw Error(Blame::user, text(file, ": the number of samples is not known, so neither are the hours"),
                "data.samples in the job, or --samples N for all jobs");
  }
  const auto best = planning::fastest_of_each_machine_option(job.plan);
  for (const auto& build : builds) {
    JobTime time;
    for (const Option* option : best) {
      if (option->machine_option.name == machine_option_name(build, true))
        time.alone = hours_of(*option), time.how = planning::changes_text(*option);
      if (option->machine_option.name == machine_option_name(build, false)) time.together = hours_of(*option);
    }
    job.times.push_back(std::move(time));
  }
  return job;
}

BuildNeeds needs_of(const std::vector<PlannedJob>& jobs) {
  BuildNeeds needs;
  for (const auto& job : jobs) {
    double host = 0;
    for (const auto& option : job.plan.options) host = std::max(host, static_cast<double>(option.host.total));
    needs.memory_gb += host / kGigabyte;
    if (job.plan.workload.decodes) {
      needs.disk_gb +=
          static_cast<double>(job.plan.workload.work.samples) * job.plan.assumptions.sample.stored_bytes / kGigabyte;
    }
  }
  needs.memory_gb += kSystemGb;
  return needs;
}

RatedBuild rate_build(const Build& build, size_t index, const std::vector<PlannedJob>& jobs,
                      const std::vector<CpuLoad>& loads, const catalogue::Catalogue& catalogue) {
  RatedBuild rated{build, index};
  std::vector<JobTime> times;
  for (const auto& job : jobs) {
    times.push_back(job.times[index]);
    if (times.back().alone == 0) rated.too_large.push_back(job.file);
  }
  rated.gpu_hours = list_hours(times, build.gpus);
  for (const auto& load : loads) rated.cpu_hours += hours_on(load, catalogue.cpu(*build.cpu->part.cpu));
  return rated;
}

void check_budget(const Money& budget, const std::vector<Build>& builds) {
  const auto cheapest =
      std::min_element(builds.begin(), builds.end(), [](const Build& a, const Build& b) { return a.price < b.price; });
  if (cheapest == builds.end()) {
    throw Error(Blame::user, "no power supply of the parts feeds any GPU with any processor",
                "a larger one: a row of kind psu in ~/.config/lockstep/catalogue/parts.json");
  }
  if (cheapest->price <= budget.amount) return;
  throw Error(Blame::user,
              text("a budget of ", planning::figure(budget.amount), " ", budget.currency, " is ",
                   planning::figure(cheapest->price - budget.amount), " ", budget.currency,
                   " under the cheapest set of parts, ", cheapest->name(), " for ", planning::figure(cheapest->price),
                   " ", budget.currency),
              text("--budget ", std::ceil(cheapest->price), budget.currency, " or more, or cheaper parts: --prices"));
}

// Most jobs first, then least hours; of builds that are as fast within a percent the cheapest.
std::vector<RatedBuild> ranked(std::vector<RatedBuild> all, double budget) {
  std::erase_if(all, [&](const RatedBuild& one) { return one.build.price > budget; });
  std::sort(all.begin(), all.end(), [](const RatedBuild& a, const RatedBuild& b) {
    return std::tuple(a.too_large.size(), a.hours(), a.build.price) <
           std::tuple(b.too_large.size(), b.hours(), b.build.price);
  });
  const auto near = [&](const RatedBuild& one) {
    return one.too_large.size() == all.front().too_large.size() && one.hours() <= (1 + kTie) * all.front().hours();
  };
  const auto end = std::find_if_not(all.begin(), all.end(), near);
  std::stable_sort(all.begin(), end,
                   [](const RatedBuild& a, const RatedBuild& b) { return a.build.price < b.build.price; });
  return all;
}

PriceRules price_rules(const base::Arguments& arguments, const Money& budget) {
  PriceRules rules;
  rules.currency = budget.currency;
  if (const auto words = arguments.value("--exchange")) {
    char* end = nullptr;
    const double rate = words->starts_with("GBP=") ? std::strtod(words->c_str() + 4, &end) : 0;
    if (!(rate > 0) || *end != '\0') {
      throw Error(Blame::user, text("--exchange ", *words, ": not a rate"), "--exchange GBP=1.27");
    }
    rules.gbp = rate;
  }
  if (const auto file = arguments.value("--prices")) rules.own = base::parse_csv(base::read_file(*file), *file);
  return rules;
}

BuyTerms terms_of(const base::Arguments& arguments) {
  if (!arguments.has("--budget")) throw Error(Blame::user, "how much may it cost?", "--budget 9800GBP");
  BuyTerms terms;
  terms.budget = parse_money(*arguments.value("--budget"));
  terms.years = planning::positive_numbers(arguments, "--life", terms.years);
  terms.hours_per_week = planning::positive_numbers(arguments, "--hours-per-week", {terms.hours_per_week}).front();
  for (const auto& words : arguments.values("--cpu-load")) terms.loads.push_back(parse_cpu_load(words));
  return terms;
}

}  // namespace

double list_hours(std::span<const JobTime> jobs, int64_t gpus) {
  std::vector<double> alone;
  double in_turn = 0;
  bool all_together = gpus > 1;
  for (const auto& job : jobs) {
    if (job.alone == 0) continue;
    alone.push_back(job.alone);
    all_together = all_together && job.together > 0;
    in_turn += job.together;
  }
  std::sort(alone.rbegin(), alone.rend());
  std::vector<double> gpu(static_cast<size_t>(gpus), 0);
  for (const double hours : alone) *std::min_element(gpu.begin(), gpu.end()) += hours;
  const double spread = *std::max_element(gpu.begin(), gpu.end());
  return all_together ? std::min(spread, in_turn) : spread;
}

Advice advise_buy(const AdviceRequest& request) {
  const base::Arguments& arguments = request.arguments;
  const BuyTerms terms = terms_of(arguments);
  const auto files = planning::words_of(arguments, "--jobs");
  if (files.empty()) throw Error(Blame::user, "what is the machine for?", "--jobs a.json,b.json");
  const PartList part_list(price_parts(request.catalogue.parts, price_rules(arguments, terms.budget)),
                           request.catalogue, arguments.value_or("--parts", ""));
  auto builds = part_list.builds({});
  check_budget(terms.budget, builds);
  const auto own = planning::words_of(arguments, "--against");
  if (!own.empty()) builds.push_back(part_list.listed(own));
  std::vector<PlannedJob> jobs;
  jobs.reserve(files.size());
  for (const auto& file : files) jobs.push_back(plan_job(file, builds, request));
  // Needs are known only now; the same order, with memory and disk that are enough.
  const BuildNeeds needs = needs_of(jobs);
  auto final_builds = part_list.builds(needs);
  std::vector<RatedBuild> all;
  for (size_t i = 0; i < final_builds.size(); ++i) {
    all.push_back(rate_build(final_builds[i], i, jobs, terms.loads, request.catalogue));
  }
  std::optional<RatedBuild> against;
  if (!own.empty()) {
    against = rate_build(builds.back(), builds.size() - 1, jobs, terms.loads, request.catalogue);
  }
  const auto order = ranked(std::move(all), terms.budget.amount);
  check_budget(terms.budget, final_builds);
  Advice advice = buy_advice({terms, jobs, order, against, needs, part_list.rules()});
  if (const auto file = arguments.value("--beside")) {
    std::map<std::string, double> ours;
    for (const auto& row : advice.document.at("memory").items()) {
      ours[row.at("job").as_string()] = row.at("forecast_bytes").as_double();
    }
    add_memory_beside(read_beside(*file), ours, advice);
    BuyPage page = read_buy_page(base::read_json(*file));
    const base::Path folder = base::Path(*file).parent_path();
    for (auto& claim : page.claims) claim.job = (folder / claim.job).lexically_normal().string();
    std::optional<Money> parts;
    if (against) parts = Money{against->build.price, terms.budget.currency};
    add_buy_page(page, parts, request, advice);
  }
  return advice;
}

}  // namespace lockstep::advice
