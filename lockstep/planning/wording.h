// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/planning/plan.h"

namespace lockstep::planning {

// The words that terminal, Markdown and JSON share.

constexpr double kSecondsPerHour = 3600;

std::string figure(double value);       // three significant digits without an exponent
std::string time_text(double seconds);  // "42.0 s", "12.3 min", "20.1 h", "12.5 d"

std::string bytes_text(int64_t bytes);                     // "12.3 GB"
std::string label_of(const forecast::Option& option);      // "minotauro, 4 x k80"
std::string changes_text(const forecast::Option& option);  // "bf16, micro-batch 64", "" as written
std::string run_text(const forecast::Option& option);      // "20.1 h", "-" when not known
std::string money_text(const forecast::Option& option);    // "28.1 USD", "12.5 kWh", "80 GPU-hour"
std::string spread_text(const forecast::Option& option);   // "+-9 %"

// What matters most, in one sentence.
std::string headline(const Plan& plan);
// "k40, k80: no current CUDA drives them (last: 11.8)"; nothing when all can be driven.
std::vector<std::string> undriven(const Plan& plan);
// The job, in one sentence.
std::string description(const Plan& plan);

}  // namespace lockstep::planning
