// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/arguments.h"
#include "lockstep/catalogue/catalogue.h"
#include "lockstep/planning/plan.h"

namespace lockstep::planning {

// What replaces words of the command line; empty: those count.
struct RequestWords {
  std::string job = {};              // the document
  std::vector<std::string> on = {};  // machine options
};
// The plan that `lockstep plan`'s arguments ask for. User error for everything that is wrong with them.
PlanRequest request_of(const base::Arguments& arguments, const catalogue::Catalogue& catalogue,
                       const RequestWords& words = {});

std::string today();  // "2026-11-18"

// "--on a,b --on c": a, b, c.
std::vector<std::string> words_of(const base::Arguments& arguments, const std::string& option);

// "--life 3,5": 3 and 5; `otherwise` where the option is not given. User error for anything not above 0.
std::vector<double> positive_numbers(const base::Arguments& arguments, const std::string& option,
                                     std::vector<double> otherwise);

}  // namespace lockstep::planning
