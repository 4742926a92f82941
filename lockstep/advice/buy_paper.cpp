// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/buy_paper.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/forecast/baselines.h"
#include "lockstep/planning/wording.h"

namespace lockstep::advice {
namespace {

using base::Align;
using base::Json;
using base::text;

constexpr size_t kMostBuilds = 10;  // rows of the comparison

double kwh_per_year(const Purchase& purchase, const Build& build) {
  return build.watts / 1000 * purchase.terms.hours_per_week * 365.25 / 7;
}

std::string whole(double value) {
  return base::format_count(std::llround(value));
}

// 0 where electricity has no price in the budget's currency.
double kwh_price(const Purchase& purchase) {
  const auto& assumed = purchase.jobs.front().plan.assumptions;
  return assumed.currency == purchase.terms.budget.currency ? assumed.kwh : 0;
}

double per_year(const Purchase& purchase, const Build& build, double years) {
  return build.price / years + kwh_per_year(purchase, build) * kwh_price(purchase);
}

void tell_parts(const Purchase& purchase, const Build& build, Paper& paper, Json& document) {
  const std::string& currency = purchase.terms.budget.currency;
  Paper::Grid grid{{{"part"}, {"what"}, {currency, Align::right}, {"source of the price"}, {"date"}}, {}, ""};
  Json rows = Json::array();
  const auto add = [&](const PricedPart& part, int64_t count) {
    const double price = part.price * static_cast<double>(count);
    grid.rows.push_back({count > 1 ? text(part.part.id, " x ", count) : part.part.id, part.part.name, whole(price),
                         part.source, part.date});
    Json row = Json::object();
    row["part"] = part.part.id;
    row["count"] = count;
    row["price"] = price;
    row["source"] = part.source;
    row["date"] = part.date;
    rows.push_back(std::move(row));
  };
  add(*build.gpu, build.gpus);
  add(*build.cpu, 1);
  for (const auto* part : build.rest) add(*part, 1);
  grid.rows.push_back({"in all", "", whole(build.price), "", ""});
  paper.table(std::move(grid));
  document["parts"] = std::move(rows);
}

void tell_figures(const Purchase& purchase, const RatedBuild& best, Paper& paper, Json& document) {
  const Build& build = best.build;
  const std::string& currency = purchase.terms.budget.currency;
  double memory = 0;
  for (const auto* part : build.rest) {
    if (part->part.kind == "memory") memory += part->part.capacity_gb.value_or(0);
  }
  std::vector<std::string> lines{
      text("cost: ", whole(build.price), " of ", whole(purchase.terms.budget.amount), " ", currency, ", ",
           whole(purchase.terms.budget.amount - build.price), " left"),
      text("power: ", whole(build.watts), " W with everything at its limit; the supply must give ",
           whole(build.watts * purchase.rules.psu_margin)),
      text("slots: ", build.slots, " of ", purchase.rules.slots, " (assumed: no price list states them)"),
      text("main memory: ", memory, " GB, the jobs need ", planning::figure(purchase.needs.memory_gb),
           "; disk: the data are ", planning::figure(purchase.needs.disk_gb), " GB"),
  };
  Json yearly = Json::array();
  for (const double years : purchase.terms.years) {
    const double cost = per_year(purchase, build, years);
    lines.push_back(text("a year, over ", years, " years: ", whole(cost), " ", currency, " with ",
                         whole(kwh_per_year(purchase, build)), " kWh (",
                         planning::figure(purchase.terms.hours_per_week), " h a week at full power) ",
                         kwh_price(purchase) > 0 ? text("at ", kwh_price(purchase), " ", currency)
                                                 : text("not counted: --assume kwh=0.30", currency)));
    yearly.push_back(cost);
  }
  paper.list(std::move(lines));
  document["price"] = build.price;
  document["watts"] = build.watts;
  document["slots"] = build.slots;
  document["per_year"] = std::move(yearly);
}

void tell_jobs(const Purchase& purchase, const RatedBuild& best, Paper& paper, Json& document) {
  paper.heading("The jobs on it");
  Paper::Grid grid{{{"job"}, {"what"}, {"one GPU", Align::right}, {"all GPUs", Align::right}, {"with"}}, {}, ""};
  for (const auto& job : purchase.jobs) {
    const JobTime& time = job.times[best.index];
    grid.rows.push_back({job.file, planning::description(job.plan),
                         time.alone > 0 ? planning::time_text(time.alone * planning::kSecondsPerHour) : "DOES NOT FIT",
                         time.together > 0 ? planning::time_text(time.together * planning::kSecondsPerHour) : "-",
                         time.how.empty() ? "as written" : time.how});
  }
  paper.table(std::move(grid));
  std::vector<std::string> lines{text("the list: ", planning::time_text(best.gpu_hours * planning::kSecondsPerHour),
                                      " on the GPUs, ", planning::time_text(best.cpu_hours * planning::kSecondsPerHour),
                                      " on the processor")};
  for (const auto& load : purchase.terms.loads) {
    lines.push_back(text(load.name, ": ", load.hours, " h on ", load.cores, " cores; counted by cores",
                         load.ghz > 0 ? " and clock" : ", at the same clock", ", second threads not counted"));
  }
  paper.list(std::move(lines));
  document["gpu_hours"] = best.gpu_hours;
  document["cpu_hours"] = best.cpu_hours;
}

// The same job's memory as others would have said it, beside the forecast for the chosen GPU.
void tell_memory(const Purchase& purchase, const RatedBuild& best, Paper& paper, Json& document) {
  paper.heading("What the jobs need of a GPU");
  Paper::Grid grid{{{"job"},
                    {"weights alone", Align::right},
                    {"live bytes", Align::right},
                    {"forecast", Align::right},
                    {"heuristic by parameters", Align::right},
                    {"times too high", Align::right},
                    {"heuristic as written", Align::right}},
                   {},
                   text("As written, one GPU (", best.build.gpu->part.id,
                        "). Heuristic: (weights + nodes) x 4 bytes x batch x 9; by parameters: 7.5 GB of ResNet-50 at "
                        "batch 32, times the ratio of the parameters")};
  Json rows = Json::array();
  const auto bytes = [](double value) { return base::format_bytes(value); };
  for (const auto& job : purchase.jobs) {
    const auto& recording = *job.plan.recording;
    const forecast::Option* option = nullptr;
    for (const auto& one : job.plan.options) {
      const bool there =
          one.as_written && one.machine_option.gpus == 1 && one.machine_option.gpu->id == best.build.gpu->part.gpu;
      if (there && !option) option = &one;
    }
    if (!option) continue;
    const auto ours = static_cast<double>(option->trial.memory.total);
    const double heuristic = forecast::deepsim_by_parameters(recording);
    grid.rows.push_back({job.file, bytes(static_cast<double>(forecast::weights_only(recording))),
                         bytes(static_cast<double>(forecast::live_bytes_peak(recording))), bytes(ours),
                         bytes(heuristic), planning::figure(heuristic / ours),
                         bytes(forecast::deepsim_heuristic(recording))});
    Json row = Json::object();
    row["job"] = job.file;
    row["forecast_bytes"] = ours;
    row["allocated_bytes"] = option->trial.memory.peak_allocated;
    row["heuristic_by_parameters_bytes"] = heuristic;
    row["heuristic_bytes"] = forecast::deepsim_heuristic(recording);
    rows.push_back(std::move(row));
  }
  paper.table(std::move(grid));
  document["memory"] = std::move(rows);
}

std::string against_best(const Purchase& purchase, const RatedBuild& best, const RatedBuild& other) {
  const std::string& currency = purchase.terms.budget.currency;
  std::vector<std::string> words;
  if (!other.too_large.empty()) words.push_back(text("does not fit: ", base::join(other.too_large, ", ")));
  const double ratio = best.hours() > 0 ? other.hours() / best.hours() : 1;
  if (ratio >= 1.005) words.push_back(text(planning::figure(ratio), " times as long"));
  if (ratio < 0.995) words.push_back(text(planning::figure(1 / ratio), " times faster"));
  const double more = other.build.price - best.build.price;
  if (std::abs(more) >= 1)
    words.push_back(text(whole(std::abs(more)), " ", currency, more > 0 ? " dearer" : " cheaper"));
  return words.empty() ? "the same" : base::join(words, ", ");
}

void tell_others(const Purchase& purchase, Paper& paper, Json& document) {
  const RatedBuild& best = purchase.order.front();
  paper.heading("Why not another");
  if (purchase.order.size() > 1) {
    const RatedBuild& second = purchase.order[1];
    paper.say(text("Runner-up: ", second.build.name(),
                   ". Against the first it is: ", against_best(purchase, best, second), "."));
    document["runner_up"] = second.build.name();
    document["runner_up_why"] = against_best(purchase, best, second);
  }
  Paper::Grid grid{{{"machine"},
                    {purchase.terms.budget.currency, Align::right},
                    {"W", Align::right},
                    {"GPUs h", Align::right},
                    {"processor h", Align::right},
                    {"in all h", Align::right},
                    {"against the first"}},
                   {},
                   ""};
  const auto add = [&](const RatedBuild& one, const std::string& name) {
    grid.rows.push_back({name, whole(one.build.price), whole(one.build.watts), planning::figure(one.gpu_hours),
                         planning::figure(one.cpu_hours), planning::figure(one.hours()),
                         against_best(purchase, best, one)});
  };
  for (size_t i = 0; i < std::min(kMostBuilds, purchase.order.size()); ++i) {
    add(purchase.order[i], purchase.order[i].build.name());
  }
  if (purchase.against) add(*purchase.against, text("your list: ", purchase.against->build.name()));
  paper.table(std::move(grid));
  if (purchase.order.size() > kMostBuilds) {
    paper.say(text("The best ", kMostBuilds, " of ", purchase.order.size(), " sets of parts within the budget."));
  }
}

void tell_against(const Purchase& purchase, Paper& paper, Json& document) {
  if (!purchase.against) return;
  const RatedBuild& best = purchase.order.front();
  const RatedBuild& other = *purchase.against;
  paper.heading("Your list");
  Json parts = Json::object();
  tell_parts(purchase, other.build, paper, parts);
  paper.say(text("Against our choice it is: ", against_best(purchase, best, other), "."));
  document["against"] = Json::object();
  document["against"]["price"] = other.build.price;
  document["against"]["hours"] = other.hours();
  document["against"]["why"] = against_best(purchase, best, other);
}

std::string buy_verdict(const Purchase& purchase) {
  const RatedBuild& best = purchase.order.front();
  std::string words =
      text("Buy ", best.build.name(), " for ", whole(best.build.price), " ", purchase.terms.budget.currency,
           ": the list takes ", planning::time_text(best.hours() * planning::kSecondsPerHour));
  if (!best.too_large.empty()) words += text("; no GPU of the parts takes ", base::join(best.too_large, ", "));
  return words + ".";
}

}  // namespace

Advice buy_advice(const Purchase& purchase) {
  const RatedBuild& best = purchase.order.front();
  Advice advice;
  Paper& paper = advice.paper;
  Json& document = advice.document;
  document = Json::object();
  document["kind"] = "advice";
  document["advice"] = "buy";
  document["verdict"] = buy_verdict(purchase);
  document["machine"] = best.build.name();
  paper.title = text("What to buy for ", whole(purchase.terms.budget.amount), " ", purchase.terms.budget.currency);
  paper.say(buy_verdict(purchase));
  tell_parts(purchase, best.build, paper, document);
  tell_figures(purchase, best, paper, document);
  tell_jobs(purchase, best, paper, document);
  tell_memory(purchase, best, paper, document);
  tell_others(purchase, paper, document);
  tell_against(purchase, paper, document);
  paper.heading("What is assumed");
  paper.list(
      {"the list's time is that of the GPUs and then that of the processor; jobs are spread over the GPUs or "
       "take all of them in turn, whichever is less",
       text("a GPU takes 3 slots from ", purchase.rules.wide_gpu_watts, " W on, 2 from ",
            purchase.rules.two_slots_watts, " W on; a case has ", purchase.rules.slots, "; the rest draws ",
            purchase.rules.rest_watts, " W"),
       "one motherboard stands for all: check that it has the processor's socket",
       "prices are of their dates: look again before you buy; your own: --prices FILE.csv (docs/formats/prices.md)"});
  return advice;
}

}  // namespace lockstep::advice
