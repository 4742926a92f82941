// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/base/json.h"

namespace lockstep::run {

constexpr int64_t kDefaultSeed = 1;  // where nobody names one

struct LoaderState {  // everything that says which sample comes next, on any number of ranks
  int64_t seed = 0;
  int64_t epoch = 0;
  int64_t consumed = 0;  // samples of this epoch already given, all ranks together

  bool operator==(const LoaderState&) const = default;
  base::Json to_json() const;
  static LoaderState from_json(const base::Json& value);
};

}  // namespace lockstep::run
