// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/money.h"

#include <algorithm>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"

namespace lockstep::forecast {
namespace {

constexpr double kHour = 3600;
constexpr double kJoulesPerKwh = 3.6e6;

// "0.79", "12.5", "1,234" would need a locale: three significant digits are enough to check a rule.
std::string figure(double value) {
  return base::fixed(value, value >= 100 ? 0 : value >= 10 ? 1 : 2);
}

Bill bill_of(std::string kind, double price, const std::string& unit, const std::string& per, double times) {
  Bill bill;
  bill.kind = std::move(kind);
  bill.amount = price * times;
  bill.unit = unit;
  bill.rule = base::text(figure(price), " ", unit, " per ", per, " x ", figure(times));
  return bill;
}

void add_machine_bills(const spec::Machine& machine, Costs& costs) {
  const spec::Prices& prices = machine.prices;
  const auto add = [&](Bill bill) {
    bill.payee = machine.name;
    bill.source = machine.source;
    bill.date = machine.date;
    costs.bills.push_back(std::move(bill));
  };
  if (prices.gpu_hour > 0) add(bill_of("rent", prices.gpu_hour, prices.currency, "GPU-hour", costs.gpu_hours));
  if (prices.node_hour > 0) add(bill_of("rent", prices.node_hour, prices.currency, "node-hour", costs.node_hours));
  if (prices.kwh > 0) add(bill_of("electricity", prices.kwh, prices.currency, "kWh", costs.kwh));
  if (prices.node_hour_units > 0) {
    add(bill_of("grant", prices.node_hour_units, prices.unit, "node-hour", costs.node_hours));
  }
}

void add_offers(const std::string& gpu, const std::vector<catalogue::Offer>& offers, Costs& costs) {
  for (const auto& offer : offers) {
    if (!offer.usd_per_gpu_hour || std::find(offer.gpus.begin(), offer.gpus.end(), gpu) == offer.gpus.end()) continue;
    Bill bill = bill_of("rent", *offer.usd_per_gpu_hour, "USD", "GPU-hour", costs.gpu_hours);
    bill.payee = offer.provider.value_or("");
    bill.source = offer.source;
    bill.date = offer.date;
    bill.limit_h = offer.session_limit_h.value_or(0);
    costs.bills.push_back(std::move(bill));
  }
}

}  // namespace

const Bill* Costs::cheapest_rent() const {
  const Bill* best = nullptr;
  for (const auto& bill : bills) {
    if (bill.kind == "rent" && bill.amount > 0 && (!best || bill.amount < best->amount)) best = &bill;
  }
  return best;
}

Costs estimate_costs(const Usage& usage, const spec::Machine& machine, bool named_machine, const std::string& gpu,
                     const std::vector<catalogue::Offer>& offers) {
  Costs costs;
  const double hours = usage.seconds / kHour;
  costs.gpu_hours = hours * static_cast<double>(usage.gpus);
  // A job on shared nodes is charged for its share of a node.
  const bool shared = named_machine && !machine.scheduler.exclusive_nodes && usage.gpus_per_node > 0 && usage.gpus > 0;
  const double nodes = shared ? static_cast<double>(usage.gpus) / static_cast<double>(usage.gpus_per_node)
                              : static_cast<double>(usage.nodes);
  costs.node_hours = hours * nodes;
  costs.core_hours = costs.node_hours * static_cast<double>(machine.cores_per_node);
  costs.kwh = usage.joules / kJoulesPerKwh;
  add_machine_bills(machine, costs);
  if (!named_machine) add_offers(gpu, offers, costs);
  return costs;
}

}  // namespace lockstep::forecast
