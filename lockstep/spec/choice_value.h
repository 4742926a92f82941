// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"

namespace lockstep::spec {

// The choice that `value` spells; user error with the place and the nearest names.
template <class Choice>
Choice choice_value(const base::Json& value) {
  static const auto kNames = choices_of(Choice{});  // a calibration asks 30,000 times
  const auto found = std::find(kNames.begin(), kNames.end(), value.as_string());
  if (found == kNames.end()) {
    throw base::Error(base::Blame::user, base::text(value.where(), ": there is no '", value.as_string(), "'"),
                      base::did_you_mean(value.as_string(), kNames));
  }
  return static_cast<Choice>(found - kNames.begin());
}

}  // namespace lockstep::spec
