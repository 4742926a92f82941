// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/advise.h"

#include <algorithm>

#include "lockstep/advice/apply.h"
#include "lockstep/advice/buy.h"
#include "lockstep/advice/cpu_or_gpu.h"
#include "lockstep/advice/explain_table.h"
#include "lockstep/advice/rent.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::advice {
namespace {

struct Adviser {
  const char* name;
  Advice (*advise)(const AdviceRequest&);
};

// One row for each piece of advice.
constexpr Adviser kAdvisers[] = {
    {"apply", advise_apply}, {"cpu-or-gpu", advise_cpu_or_gpu}, {"rent", advise_rent},
    {"buy", advise_buy},     {"table", advise_table},
};

}  // namespace

std::vector<std::string> advice_names() {
  std::vector<std::string> names;
  for (const auto& adviser : kAdvisers) names.emplace_back(adviser.name);
  return names;
}

Advice advise(const std::string& what, const AdviceRequest& request) {
  for (const auto& adviser : kAdvisers) {
    if (what == adviser.name) return adviser.advise(request);
  }
  throw base::Error(base::Blame::user, base::text("--advise: there is no advice '", what, "'"),
                    base::did_you_mean(what, advice_names()));
}

}  // namespace lockstep::advice
