// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/rent.h"

#include <algorithm>
#include <cstdio>
#include <tuple>

#include "lockstep/advice/prices.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/planning/fastest.h"
#include "lockstep/planning/request.h"
#include "lockstep/planning/wording.h"

namespace lockstep::advice {
namespace {

using base::Align;
using base::Json;
using base::text;
using forecast::Option;

constexpr double kWeeksPerYear = 365.25 / 7;
constexpr double kHoursPerWeek = 24 * 7;

// One offer for one GPU, with what the job would take of it.
struct Hire {
  const catalogue::Offer* offer = nullptr;
  const Option* option = nullptr;
  double hours = 0;
  int64_t sessions = 0;  // 0: no limit, or it would never end
  bool limited = false;
  bool loader_bound = false;
  double usd = 0;
  bool old = false;

  bool leads() const { return option->drivable && !old; }
  std::string mark() const {
    std::vector<std::string> words;
    if (!option->drivable) words.emplace_back("not driven");
    if (old) words.push_back(text("older than ", kOldMonths, " months"));
    return base::join(words, ", ");
  }
};

std::string provider_of(const catalogue::Offer& offer) {
  return offer.provider.value_or("not named");
}

// The offer's own cores and session limit count: two cores decode for the GPU, and each session starts over.
Hire estimate_hire(const planning::Plan& plan, const catalogue::Offer& offer, const Option& option) {
  Hire hire{&offer, &option};
  forecast::Pace pace = option.pace;
  hire.limited = offer.session_limit_h.has_value();
  if (hire.limited) pace.walltime = *offer.session_limit_h * planning::kSecondsPerHour;
  if (offer.cores && option.loader) pace.loader_rate = option.loader->per_core * static_cast<double>(*offer.cores);
  const auto length = forecast::estimate_length(plan.workload.work, pace);
  if (!length) return hire;
  hire.hours = length->total / planning::kSecondsPerHour;
  hire.sessions = length->jobs;
  hire.loader_bound = length->loader_bound;
  hire.usd = hire.hours * *offer.usd_per_gpu_hour * static_cast<double>(option.machine_option.gpus);
  return hire;
}

std::vector<Hire> find_hires(const planning::Plan& plan, const std::vector<const Option*>& gpus,
                             const std::vector<catalogue::Offer>& offers, const std::string& today) {
  std::vector<Hire> hires;
  for (const auto& offer : offers) {
    if (!offer.usd_per_gpu_hour) continue;
    for (const Option* option : gpus) {
      const bool offered =
          std::find(offer.gpus.begin(), offer.gpus.end(), option->machine_option.gpu->id) != offer.gpus.end();
      if (!offered || !option->feasible()) continue;
      hires.push_back(estimate_hire(plan, offer, *option));
      hires.back().old = months_since(offer.date, today) > kOldMonths;
    }
  }
  std::stable_sort(hires.begin(), hires.end(), [](const Hire& a, const Hire& b) {
    return std::tuple(!a.leads(), a.usd, a.hours) < std::tuple(!b.leads(), b.usd, b.hours);
  });
  return hires;
}

std::string sessions_of(const Hire& hire) {
  if (!hire.limited) return "-";
  return hire.sessions == 0 ? "never ends"
                            : text(hire.sessions, " of ", planning::figure(*hire.offer->session_limit_h), " h");
}

std::string with_levers_text(const Option& option) {
  const std::string changed = planning::changes_text(option);
  return changed.empty() ? planning::label_of(option) : text(planning::label_of(option), " (", changed, ")");
}

void tell_offers(const std::vector<Hire>& hires, Paper& paper, Json& document) {
  paper.heading("Offers");
  Paper::Grid grid{{{"GPU"},
                    {"provider"},
                    {"hours", Align::right},
                    {"USD/GPU-h", Align::right},
                    {"USD", Align::right},
                    {"sessions", Align::right},
                    {"date"},
                    {"source"},
                    {""}},
                   {},
                   "Cheapest first, what cannot be used last. Prices of other clouds differ 3 to 5 times: look again "
                   "before you pay."};
  Json rows = Json::array();
  for (const Hire& hire : hires) {
    grid.rows.push_back({with_levers_text(*hire.option), provider_of(*hire.offer),
                         text(planning::figure(hire.hours), hire.loader_bound ? " (loader)" : ""),
                         planning::figure(*hire.offer->usd_per_gpu_hour), planning::figure(hire.usd), sessions_of(hire),
                         hire.offer->date, hire.offer->source, hire.mark()});
    Json row = Json::object();
    row["gpu"] = hire.option->machine_option.gpu->id;
    row["gpus"] = hire.option->machine_option.gpus;
    row["offer"] = hire.offer->id;
    row["hours"] = hire.hours;
    row["usd"] = hire.usd;
    row["sessions"] = hire.limited ? Json(hire.sessions) : Json();
    row["drivable"] = hire.option->drivable;
    row["leads"] = hire.leads();
    row["source"] = hire.offer->source;
    row["date"] = hire.offer->date;
    rows.push_back(std::move(row));
  }
  paper.table(std::move(grid));
  document["offers"] = std::move(rows);
}

const Hire* cheapest_paid(const std::vector<Hire>& hires, const std::string& gpu) {
  for (const Hire& hire : hires) {
    if (hire.usd > 0 && hire.option->machine_option.gpu->id == gpu) return &hire;
  }
  return nullptr;
}

// USD an hour that the GPU draws at the meter, the machine around it included.
double electricity_per_hour(const planning::Plan& plan, const Option& option) {
  const double hours = option.costs.gpu_hours;
  return hours > 0 ? option.costs.kwh / hours * plan.assumptions.kwh : 0;
}

std::string break_even_text(const std::optional<double>& hours) {
  if (!hours) return "never";
  return *hours > kHoursPerWeek ? text("never (", planning::figure(*hours), ")") : planning::figure(*hours);
}

void tell_break_even(const planning::Plan& plan, const std::vector<const Option*>& gpus, const std::vector<Hire>& hires,
                     const RentTerms& terms, Paper& paper, Json& document) {
  paper.heading("Rent or buy");
  Paper::Grid grid{
      {{"GPU"}, {"price USD", Align::right}, {"rent USD/h", Align::right}, {"electricity USD/h", Align::right}},
      {},
      "Hours of computing a week from which on buying the GPU costs less (a week has 168)"};
  for (const double years : terms.years) grid.columns.push_back({text("over ", years, " years"), Align::right});
  Json rows = Json::array();
  std::vector<std::string> notes;
  for (const Option* option : gpus) {
    const auto& gpu = *option->machine_option.gpu;
    const Hire* hire = cheapest_paid(hires, gpu.id);
    if (!hire || !gpu.price_usd) {
      notes.push_back(text(gpu.id,
                           hire ? ": the catalogue has no price of the GPU" : ": nobody is known to rent it out",
                           " (a row of your own in ~/.config/lockstep/catalogue/)"));
      continue;
    }
    const double electricity = electricity_per_hour(plan, *option);
    std::vector<std::string> cells{gpu.id, planning::figure(*gpu.price_usd),
                                   planning::figure(*hire->offer->usd_per_gpu_hour),
                                   plan.assumptions.kwh > 0 ? planning::figure(electricity) : "not counted"};
    Json row = Json::object();
    row["gpu"] = gpu.id;
    row["hours_per_week"] = Json::array();
    for (const double years : terms.years) {
      const auto hours = break_even_hours_per_week(*gpu.price_usd, years, *hire->offer->usd_per_gpu_hour, electricity);
      cells.push_back(break_even_text(hours));
      row["hours_per_week"].push_back(hours ? Json(*hours) : Json());
    }
    grid.rows.push_back(std::move(cells));
    rows.push_back(std::move(row));
    notes.push_back(text(gpu.id, ": price of ", gpu.source, ", ", gpu.date));
  }
  if (!grid.rows.empty()) paper.table(std::move(grid));
  notes.push_back("the GPU alone is bought: a machine to put it in is not counted");
  if (plan.assumptions.kwh == 0) notes.emplace_back("electricity is not counted: --assume kwh=0.30USD counts it");
  paper.list(std::move(notes));
  document["break_even"] = std::move(rows);
}

std::string rent_verdict(const planning::Plan& plan, const std::vector<Hire>& hires, const RentTerms& terms) {
  std::vector<std::string> words;
  const Hire& first = hires.front();
  if (!first.leads()) {
    words.push_back(text("no offer of these can be recommended (", first.mark(),
                         "): ask for other GPUs with --on, or "
                         "give today's prices with --prices"));
  }
  if (first.leads() && first.usd == 0) {
    words.push_back(text("free: ", provider_of(*first.offer), " on ", planning::label_of(*first.option), " in ",
                         planning::figure(first.hours), " h", first.limited ? text(", ", sessions_of(first)) : ""));
  }
  const auto paid =
      std::find_if(hires.begin(), hires.end(), [](const Hire& hire) { return hire.leads() && hire.usd > 0; });
  if (paid == hires.end()) return base::join(words, "; ");
  words.push_back(text("cheapest: ", with_levers_text(*paid->option), " for ", planning::figure(paid->usd), " USD in ",
                       planning::figure(paid->hours), " h (price of ", paid->offer->date, ")"));
  const auto& gpu = *paid->option->machine_option.gpu;
  const double electricity = electricity_per_hour(plan, *paid->option);
  const auto even = gpu.price_usd ? break_even_hours_per_week(*gpu.price_usd, terms.years.front(),
                                                              *paid->offer->usd_per_gpu_hour, electricity)
                                  : std::nullopt;
  if (!even) return base::join(words, "; ");
  if (*even > kHoursPerWeek) {
    words.push_back(text("buying the GPU never pays within ", terms.years.front(), " years"));
  } else {
    words.push_back(
        text("buying it pays from ", planning::figure(*even), " h a week on, over ", terms.years.front(), " years"));
  }
  if (terms.hours_per_week > 0) {
    words.push_back(text("with ", planning::figure(terms.hours_per_week),
                         " h a week: ", terms.hours_per_week < *even ? "rent" : "buy"));
  }
  return base::join(words, "; ");
}

void check_currency(const planning::Plan& plan) {
  if (plan.assumptions.kwh == 0 || plan.assumptions.currency == "USD") return;
  throw base::Error(base::Blame::user,
                    text("--assume kwh is in ", plan.assumptions.currency, ", offers and GPUs are in USD"),
                    "--assume kwh=0.30USD");
}

}  // namespace

std::optional<double> break_even_hours_per_week(double price, double years, double rent, double electricity) {
  if (rent <= electricity) return std::nullopt;
  return price / (years * kWeeksPerYear) / (rent - electricity);
}

Advice rent(const planning::Plan& plan, const catalogue::Catalogue& catalogue, const RentTerms& terms) {
  check_currency(plan);
  std::vector<const Option*> gpus;
  for (const Option* option : planning::fastest_of_each_machine_option(plan)) {
    if (option->machine_option.gpu && !option->machine_option.named) gpus.push_back(option);
  }
  const auto hires = find_hires(plan, gpus, catalogue.clouds, terms.today);
  if (hires.empty()) {
    throw base::Error(base::Blame::user, "nobody is known to rent out a GPU of these that the job fits on",
                      "leave --on out for every GPU on offer, or add offers to ~/.config/lockstep/catalogue/");
  }
  if (hires.front().hours == 0) {
    throw base::Error(base::Blame::user, "how long the run is, is not known", "--samples N, or training.steps");
  }
  Advice advice;
  advice.document = Json::object();
  advice.document["kind"] = "advice";
  advice.document["advice"] = "rent";
  advice.document["verdict"] = rent_verdict(plan, hires, terms);
  advice.paper.title = text("Where to rent: ", plan.title);
  for (const auto& line : planning::undriven(plan)) advice.paper.say(line + ".");
  advice.paper.say(rent_verdict(plan, hires, terms) + ".");
  advice.paper.say(text("The job: ", planning::description(plan), "."));
  tell_offers(hires, advice.paper, advice.document);
  tell_break_even(plan, gpus, hires, terms, advice.paper, advice.document);
  std::vector<std::string> unpriced = plan.notes;
  for (const auto& offer : catalogue.clouds) {
    if (!offer.usd_per_gpu_hour) {
      unpriced.push_back(text(provider_of(offer), ": ", offer.notes, "; ", offer.source, ", ", offer.date));
    }
  }
  if (!unpriced.empty()) advice.paper.list(std::move(unpriced));
  return advice;
}

int64_t months_since(const std::string& date, const std::string& today) {
  int year = 0, month = 0, this_year = 0, this_month = 0;
  if (std::sscanf(date.c_str(), "%d-%d", &year, &month) != 2) return 0;
  if (std::sscanf(today.c_str(), "%d-%d", &this_year, &this_month) != 2) return 0;
  return int64_t{12} * (this_year - year) + this_month - month;
}

std::vector<catalogue::Offer> read_offers(const base::Csv& csv, const catalogue::Catalogue& catalogue) {
  const auto number = [&](const base::Csv::Row& row, const char* column, const char* fix) -> std::optional<double> {
    const std::string words = cell_or_nothing(csv, row, column);
    if (words.empty()) return std::nullopt;
    return cell_number(csv, row, column, words, fix);
  };
  std::vector<catalogue::Offer> offers;
  for (const auto& row : csv.rows) {
    catalogue::Offer offer;
    offer.id = text("own-", row.line);
    offer.gpus = {catalogue.gpu(std::string(base::trim(csv.at(row, "gpu"))), text(csv.source, ":", row.line)).id};
    const std::string provider = cell_or_nothing(csv, row, "provider");
    offer.provider = provider.empty() ? csv.source : provider;
    offer.usd_per_gpu_hour =
        cell_number(csv, row, "price", csv.at(row, "price"), "USD an hour and GPU, for example 1.99");
    offer.session_limit_h = number(row, "session_limit_h", "hours, for example 12");
    if (const auto cores = number(row, "cores", "for example 16")) offer.cores = static_cast<int64_t>(*cores);
    offer.source = csv.source;
    offer.date = cell_or_nothing(csv, row, "date");
    offers.push_back(std::move(offer));
  }
  return offers;
}

Advice advise_rent(const AdviceRequest& request) {
  catalogue::Catalogue catalogue = request.catalogue;
  if (const auto file = request.arguments.value("--prices")) {
    auto own = read_offers(base::parse_csv(base::read_file(*file), *file), catalogue);
    catalogue.clouds.insert(catalogue.clouds.begin(), own.begin(), own.end());
  }
  planning::RequestWords words;
  words.on = planning::words_of(request.arguments, "--on");
  if (words.on.empty()) {
    for (const auto& gpu : catalogue.gpus) {
      const auto& offers = catalogue.clouds;
      const bool offered = std::any_of(offers.begin(), offers.end(), [&](const catalogue::Offer& offer) {
        return offer.usd_per_gpu_hour && std::find(offer.gpus.begin(), offer.gpus.end(), gpu.id) != offer.gpus.end();
      });
      if (offered && gpu.vendor == "NVIDIA") words.on.push_back(gpu.id);
    }
  }
  RentTerms terms;
  terms.today = planning::today();
  terms.years = planning::positive_numbers(request.arguments, "--life", terms.years);
  terms.hours_per_week = planning::positive_numbers(request.arguments, "--hours-per-week", {0}).front();
  planning::PlanRequest asked = planning::request_of(request.arguments, catalogue, words);
  asked.tracer = request.tracer;
  const planning::Plan plan = planning::make_plan(asked, catalogue, request.calibration);
  return rent(plan, catalogue, terms);
}

}  // namespace lockstep::advice
