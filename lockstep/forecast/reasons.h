// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/forecast/option.h"

namespace lockstep::forecast {

// Says in option.why, in words, why it fits and how fast it is, or why not.
// REQUIRES: everything else of the option is there.
void add_reasons(const ForecastContext& context, Option& option);

}  // namespace lockstep::forecast
