// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "lockstep/advice/advise.h"
#include "lockstep/planning/plan.h"

namespace lockstep::advice {

// `lockstep plan job.json --advise rent [--on t4,v100-16] [--life 3,5] [--hours-per-week 20]`: without --on every GPU
// that somebody rents out.
Advice advise_rent(const AdviceRequest& request);

struct RentTerms {
  std::vector<double> years = {3, 5};  // of use, when the GPU is bought instead
  double hours_per_week = 0;           // 0: not said
};

// Each offer for the GPUs of the plan: hours, sessions, money; and from how many hours a week on buying the GPU costs
// less. The plan's GPUs are machine options without a machine. User error when nobody rents out any of them.
Advice rent(const planning::Plan& plan, const catalogue::Catalogue& catalogue, const RentTerms& terms);

// Hours a week above which a GPU of that price, used for so many years, costs less than renting; both rates an hour.
// Nothing: renting costs no more than the electricity.
std::optional<double> break_even_hours_per_week(double price, double years, double rent, double electricity);

}  // namespace lockstep::advice
