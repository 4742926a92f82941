// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/forecast/trial.h"

namespace lockstep::planning {

// What a plan assumes, one row each: its key for --assume, its value as one would write it, and what it is.
struct Assumed {
  std::string key;
  std::string value;
  std::string help;
};
std::vector<Assumed> list_assumptions(const forecast::Assumptions& assumptions);

// "start_up=2 min", "kwh=0.30 GBP", "pue=1.5". User error: an unknown key (nearest names), a malformed value.
void assume(forecast::Assumptions& assumptions, const std::string& words);

}  // namespace lockstep::planning
