// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/csv.h"
#include "lockstep/catalogue/rows.h"

namespace lockstep::advice {

struct Money {
  double amount = 0;
  std::string currency;  // ISO 4217
};
// "9800GBP", "9,800 GBP", "9.8k GBP". User error: no amount above 0, an unknown currency (nearest ones).
Money parse_money(const std::string& words);

// A part and what it costs, taxes in, in the currency of the budget.
struct PricedPart {
  catalogue::Part part;
  double price = 0;
  std::string source;
  std::string date;
  bool own = false;  // the user's price
};

// A cell without the blanks around it; empty where the table has no such column.
std::string cell_or_nothing(const base::Csv& csv, const base::Csv::Row& row, const std::string& column);
// What a cell says, a number of 0 or more; user error with the line, and `fix`.
double cell_number(const base::Csv& csv, const base::Csv::Row& row, const std::string& column, std::string words,
                   const std::string& fix);

struct PriceRules {
  std::string currency = "GBP";    // of the budget
  std::optional<double> gbp = {};  // what one GBP of the catalogue costs in it; nothing: not said
  // The user's prices: part, price, and where they stand currency, vat, date. A part that the catalogue does not know
  // says its kind, and name, gpu, cpu, capacity_gb, power_w as a row of parts.json has them.
  std::optional<base::Csv> own = {};
};

// The catalogue's parts that have a price, the user's prices first. User error with the line: an unknown part without a
// kind (nearest ids), a price or VAT that is no number, another currency than the budget's; also when the catalogue's
// pounds are needed in another currency and no rate is given.
std::vector<PricedPart> price_parts(const std::vector<catalogue::Part>& parts, const PriceRules& rules);

}  // namespace lockstep::advice
