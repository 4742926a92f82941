// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/prices.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::advice {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr const char* kPriceFix = "for example 1899";
constexpr const char* kVatFix = "the tax that is not yet in the price, in percent: 20, or nothing";

const std::vector<std::string> kCurrencies{"GBP", "EUR", "USD", "CHF", "JPY", "CNY", "KRW", "INR",
                                           "CAD", "AUD", "SEK", "NOK", "DKK", "PLN", "CZK", "BRL"};

void check_known_currency(const std::string& currency, const std::string& where) {
  if (std::find(kCurrencies.begin(), kCurrencies.end(), currency) != kCurrencies.end()) return;
  throw Error(Blame::user, text(where, ": '", currency, "' is not a currency"),
              base::did_you_mean(currency, kCurrencies));
}

std::optional<double> plain_number(std::string words) {
  words.erase(std::remove(words.begin(), words.end(), ','), words.end());
  words = std::string(base::trim(words));
  char* end = nullptr;
  const double value = std::strtod(words.c_str(), &end);
  if (words.empty() || *end != '\0' || !std::isfinite(value) || value < 0) return std::nullopt;
  return value;
}

// A part that the catalogue does not know.
catalogue::Part new_part(const base::Csv& csv, const base::Csv::Row& row, const std::string& id,
                         const std::string& kind) {
  const auto number = [&](const char* column) -> catalogue::Number {
    const std::string words = cell_or_nothing(csv, row, column);
    if (words.empty()) return std::nullopt;
    return cell_number(csv, row, column, words, kPriceFix);
  };
  const auto word = [&](const char* column) -> catalogue::Text {
    const std::string words = cell_or_nothing(csv, row, column);
    return words.empty() ? catalogue::Text() : catalogue::Text(words);
  };
  catalogue::Part part;
  part.id = id;
  part.kind = kind;
  part.name = word("name").value_or(id);
  part.gpu = word("gpu");
  part.cpu = word("cpu");
  part.capacity_gb = number("capacity_gb");
  part.power_w = number("power_w");
  return part;
}

// "part,price,currency,vat": a VAT is added to the price; without one the price is what is paid.
std::map<std::string, PricedPart> own_prices(const base::Csv& csv, const std::vector<catalogue::Part>& parts,
                                             const std::string& currency) {
  std::map<std::string, PricedPart> prices;
  std::vector<std::string> ids;
  ids.reserve(parts.size());
  for (const auto& part : parts) ids.push_back(part.id);
  for (const auto& row : csv.rows) {
    const std::string id(base::trim(csv.at(row, "part")));
    const std::string where = text(csv.source, ":", row.line);
    const std::string kind = cell_or_nothing(csv, row, "kind");
    const bool known = std::find(ids.begin(), ids.end(), id) != ids.end();
    if (!known && kind.empty()) {
      throw Error(Blame::user, text(where, ": the catalogue has no part '", id, "'"),
                  text(base::did_you_mean(id, ids),
                       "; a new part says its kind: columns kind, name, gpu, cpu, "
                       "capacity_gb, power_w"));
    }
    const std::string stated = cell_or_nothing(csv, row, "currency");
    if (!stated.empty()) check_known_currency(stated, where);
    if (!stated.empty() && stated != currency) {
      throw Error(Blame::user, text(where, ": a price in ", stated, ", the budget is in ", currency),
                  "write your prices in the currency of the budget");
    }
    const std::string vat = cell_or_nothing(csv, row, "vat");
    PricedPart priced;
    priced.own = true;
    priced.date = cell_or_nothing(csv, row, "date");
    if (!known) priced.part = new_part(csv, row, id, kind);
    priced.price = cell_number(csv, row, "price", csv.at(row, "price"), kPriceFix);
    if (!vat.empty()) priced.price *= 1 + cell_number(csv, row, "vat", vat, kVatFix) / 100;
    priced.source = vat.empty() ? csv.source : text(csv.source, ", with ", vat, vat.ends_with('%') ? "" : "%", " VAT");
    prices[id] = std::move(priced);
  }
  return prices;
}

}  // namespace

std::string cell_or_nothing(const base::Csv& csv, const base::Csv::Row& row, const std::string& column) {
  const bool there = std::find(csv.columns.begin(), csv.columns.end(), column) != csv.columns.end();
  return there ? std::string(base::trim(csv.at(row, column))) : "";
}

double cell_number(const base::Csv& csv, const base::Csv::Row& row, const std::string& column, std::string words,
                   const std::string& fix) {
  if (words.ends_with('%')) words.pop_back();
  if (const auto value = plain_number(words)) return *value;
  throw Error(Blame::user, text(csv.source, ":", row.line, ": ", column, " '", words, "' is not a number of 0 or more"),
              fix);
}

Money parse_money(const std::string& words) {
  const size_t letters = words.find_first_not_of("0123456789.,k ");
  const std::string currency = letters == std::string::npos ? "" : std::string(base::trim(words.substr(letters)));
  std::string amount(base::trim(words.substr(0, letters)));
  const bool thousands = amount.ends_with('k');
  if (thousands) amount.pop_back();
  const auto value = plain_number(amount);
  if (!value || *value == 0) {
    throw Error(Blame::user, text("'", words, "' is not an amount of money"), "for example 9800GBP");
  }
  if (currency.empty()) throw Error(Blame::user, text("'", words, "' has no currency"), text(words, "GBP"));
  check_known_currency(currency, text("'", words, "'"));
  return {thousands ? *value * 1000 : *value, currency};
}

std::vector<PricedPart> price_parts(const std::vector<catalogue::Part>& parts, const PriceRules& rules) {
  auto own = rules.own ? own_prices(*rules.own, parts, rules.currency) : std::map<std::string, PricedPart>{};
  std::vector<PricedPart> priced;
  for (const auto& part : parts) {
    if (const auto found = own.find(part.id); found != own.end()) {
      found->second.part = part;
      priced.push_back(std::move(found->second));
      own.erase(found);
      continue;
    }
    if (!part.price_gbp) continue;
    if (rules.currency != "GBP" && !rules.gbp) {
      throw Error(Blame::user,
                  text("'", part.id, "' costs ", *part.price_gbp, " GBP in the catalogue, the budget is in ",
                       rules.currency, ": no rate of exchange is known"),
                  text("--exchange GBP=1.2 (", rules.currency, " for one GBP), or --prices with all parts in ",
                       rules.currency));
    }
    priced.push_back({part, *part.price_gbp * rules.gbp.value_or(1), part.source, part.date});
  }
  for (auto& [id, part] : own) priced.push_back(std::move(part));  // what the catalogue does not know
  return priced;
}

}  // namespace lockstep::advice
