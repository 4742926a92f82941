// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"

namespace lockstep::forecast {

// The choice that `value` spells; user error with the place and the nearest names.
template <class Choice>
Choice choice_value(const base::Json& value) {
  const auto names = choices_of(Choice{});
  const auto found = std::find(names.begin(), names.end(), value.as_string());
  if (found == names.end()) {
    throw base::Error(base::Blame::user, base::text(value.where(), ": there is no '", value.as_string(), "'"),
                      base::did_you_mean(value.as_string(), names));
  }
  return static_cast<Choice>(found - names.begin());
}

}  // namespace lockstep::forecast
