// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/advice/advise.h"
#include "lockstep/base/csv.h"
#include "lockstep/catalogue/rows.h"
#include "lockstep/planning/plan.h"

namespace lockstep::advice {

// `lockstep plan job.json --advise rent [--on t4,v100-16] [--life 3,5] [--hours-per-week 20]`: without --on every GPU
// that somebody rents out.
Advice advise_rent(const AdviceRequest& request);

struct RentTerms {
  std::vector<double> years = {3, 5};  // of use, when the GPU is bought instead
  double hours_per_week = 0;           // 0: not said
  std::string today = {};              // "2026-11-18"; empty: no offer is called old
};

// Offers of a CSV: gpu,price and where they stand provider, session_limit_h, cores, date. The price is USD an hour and
// GPU. User error with the line.
std::vector<catalogue::Offer> read_offers(const base::Csv& csv, const catalogue::Catalogue& catalogue);

// Whole months from "2021-03" or "2021-03-15" to today; 0 where one of them is no date.
int64_t months_since(const std::string& date, const std::string& today);
// Prices older than this lead no verdict, and are marked.
constexpr int64_t kOldMonths = 18;

// Each offer for the GPUs of the plan: hours, sessions, money. Those that nothing current drives, and old ones, stand
// last and lead no verdict. And from how many hours a week on buying the GPU costs
// less. The plan's GPUs are machine options without a machine. User error when nobody rents out any of them.
Advice rent(const planning::Plan& plan, const catalogue::Catalogue& catalogue, const RentTerms& terms);

// Hours a week above which a GPU of that price, used for so many years, costs less than renting; both rates an hour.
// Nothing: renting costs no more than the electricity.
std::optional<double> break_even_hours_per_week(double price, double years, double rent, double electricity);

}  // namespace lockstep::advice
