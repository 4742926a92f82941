// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/buy_claims.h"

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/planning/machine_options.h"
#include "lockstep/planning/wording.h"
#include "lockstep/spec/choice_value.h"
#include "lockstep/weights/load_job.h"

namespace lockstep::advice {
namespace {

using base::Json;
using base::text;

constexpr double kNear = 0.15;  // a "times faster" that is right to this is called true

Money money_in(const Json& words) {
  try {
    return parse_money(words.as_string());
  } catch (const base::Error& error) {
    throw base::Error(error.blame(), text(words.where(), ": ", error.what()), error.fix());
  }
}

std::vector<std::string> strings_in(const Json* list) {
  std::vector<std::string> all;
  if (list == nullptr) return all;
  for (const auto& item : list->items()) all.push_back(item.as_string());
  return all;
}

BuyClaim claim_in(const Json& row) {
  BuyClaim claim;
  claim.says = row.at("says").as_string();
  claim.kind = spec::choice_value<BuyClaimKind>(row.at("kind"));
  claim.job = row.at("job").as_string();
  claim.set = strings_in(row.find("set"));
  claim.on = strings_in(&row.at("on"));
  claim.gpus = row.int_or("gpus", 1);
  if (claim.gpus < 1) {
    throw base::Error(base::Blame::user, text(row.at("gpus").where(), ": ", claim.gpus, " GPUs"), "1 or more");
  }
  claim.value = row.double_or("value", 1);
  const size_t wanted = claim.kind == BuyClaimKind::times_faster ? 2 : 1;
  if (claim.on.size() < wanted) {
    throw base::Error(base::Blame::user, text(row.at("on").where(), ": it names ", claim.on.size(), " GPUs"),
                      wanted == 2 ? "the faster one and the slower one" : "at least one");
  }
  return claim;
}

const forecast::Option& written_on(const planning::Plan& plan, const std::string& gpu) {
  for (const auto& option : plan.options) {
    if (option.as_written && option.machine_option.name == gpu) return option;
  }
  throw base::Error(base::Blame::user, text("a statement is about '", gpu, "', which is not one GPU"),
                    "\"on\" names GPUs of the catalogue: lockstep doctor --catalogue gpus");
}

planning::Plan plan_claim(const BuyClaim& claim, const AdviceRequest& request) {
  planning::PlanRequest asked;
  asked.job = weights::load_job(claim.job, claim.set).job;
  asked.lengths = planning::find_lengths(asked.job, 0, 0);
  planning::MachineRequest machines;
  machines.on = claim.on;
  machines.gpus = {claim.gpus};
  machines.here = [] { return planning::Here{}; };
  asked.machine_options = planning::find_machine_options(machines, request.catalogue);
  asked.search = false;
  asked.tracer = request.tracer;
  return planning::make_plan(asked, request.catalogue, request.calibration);
}

// By how much an offer is dearer; money of another currency is not compared.
std::string against_parts(const Money& price, const std::optional<Money>& parts) {
  if (!parts || parts->amount <= 0 || parts->currency != price.currency) return "-";
  const double more = price.amount - parts->amount;
  return text(more < 0 ? "" : "+", base::format_count(std::llround(more)), " (",
              planning::figure(price.amount / parts->amount), " times)");
}

void tell_prices(const BuyPage& page, const std::optional<Money>& parts, Advice& advice) {
  if (page.prices.empty()) return;
  advice.paper.heading("What others ask for a machine");
  Paper::Grid grid{
      {{"offer"}, {"price", base::Align::right}, {"against the parts", base::Align::right}, {"remark"}}, {}, ""};
  for (const auto& one : page.prices) {
    grid.rows.push_back({one.what, text(base::format_count(std::llround(one.price.amount)), " ", one.price.currency),
                         against_parts(one.price, parts), one.why});
  }
  if (parts) {
    grid.caption = text("The parts of your list cost ", base::format_count(std::llround(parts->amount)),
                        "; the rest is for building, testing and warranty");
  }
  advice.paper.table(std::move(grid));
}

}  // namespace

BuyPage read_buy_page(const Json& document) {
  BuyPage page;
  if (const Json* prices = document.find("prices")) {
    for (const auto& row : prices->items()) {
      page.prices.push_back({row.at("what").as_string(), money_in(row.at("price")), row.string_or("why", "")});
    }
  }
  if (const Json* claims = document.find("claims")) {
    for (const auto& row : claims->items()) page.claims.push_back(claim_in(row));
  }
  return page;
}

CheckedBuyClaim check_buy_claim(const BuyClaim& claim, const planning::Plan& plan) {
  CheckedBuyClaim checked;
  if (claim.kind == BuyClaimKind::does_not_fit) {
    std::vector<std::string> words;
    checked.holds = true;
    for (const auto& gpu : claim.on) {
      const forecast::Option& option = written_on(plan, gpu);
      checked.holds = checked.holds && !option.trial.fits;
      words.push_back(text(planning::label_of(option), ": ", planning::bytes_text(option.trial.memory.total), " of ",
                           planning::bytes_text(option.trial.capacity), " each, ",
                           option.trial.fits ? "it fits" : "it does not"));
    }
    checked.because = base::join(words, "; ");
    return checked;
  }
  const forecast::Option& fast = written_on(plan, claim.on[0]);
  const forecast::Option& slow = written_on(plan, claim.on[1]);
  for (const auto* option : {&fast, &slow}) {
    if (option->trial.fits && option->trial.time) continue;
    checked.because =
        text("it does not run on ", planning::label_of(*option), ": ", planning::bytes_text(option->trial.memory.total),
             " of ", planning::bytes_text(option->trial.capacity));
    return checked;
  }
  const double times = slow.trial.time->step.value / fast.trial.time->step.value;
  checked.holds = std::abs(times - claim.value) <= kNear * claim.value;
  checked.because =
      text(planning::figure(times), " times by forecast: ", planning::time_text(slow.trial.time->step.value),
           " against ", planning::time_text(fast.trial.time->step.value), " a step, +-",
           std::lround(100 * (fast.trial.time->step.high / fast.trial.time->step.value - 1)), " % each");
  return checked;
}

void add_buy_page(const BuyPage& page, const std::optional<Money>& parts, const AdviceRequest& request,
                  Advice& advice) {
  tell_prices(page, parts, advice);
  if (page.claims.empty()) return;
  advice.paper.heading("Their statements, checked");
  Paper::Grid grid{{{"statement"}, {"is"}, {"because"}}, {}, ""};
  Json rows = Json::array();
  for (const auto& claim : page.claims) {
    const CheckedBuyClaim checked = check_buy_claim(claim, plan_claim(claim, request));
    grid.rows.push_back({claim.says, checked.holds ? "true" : "false", checked.because});
    Json row = Json::object();
    row["says"] = claim.says;
    row["holds"] = checked.holds;
    row["because"] = checked.because;
    rows.push_back(std::move(row));
  }
  advice.paper.table(std::move(grid));
  advice.document["claims"] = std::move(rows);
}

}  // namespace lockstep::advice
