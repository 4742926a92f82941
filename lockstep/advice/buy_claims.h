// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/advice/advise.h"
#include "lockstep/advice/prices.h"
#include "lockstep/base/json.h"
#include "lockstep/planning/plan.h"
#include "lockstep/spec/choice.h"

namespace lockstep::advice {

// What a page about a machine to buy says beside figures of memory: docs/formats/beside.md.

// What somebody asks for a whole machine.
struct AskedPrice {
  std::string what;
  Money price;
  std::string why;
};

//   does_not_fit   the job on so many of each of these GPUs, as it is written
//   times_faster   on the first of two GPUs the job is so many times as fast as on the second
LOCKSTEP_CHOICE(BuyClaimKind, does_not_fit, times_faster)
struct BuyClaim {
  std::string says;
  BuyClaimKind kind = BuyClaimKind::does_not_fit;
  std::string job;               // a document beside the file
  std::vector<std::string> set;  // overrides of it
  std::vector<std::string> on;   // GPUs of the catalogue
  int64_t gpus = 1;
  double value = 1;
};

struct BuyPage {
  std::vector<AskedPrice> prices;
  std::vector<BuyClaim> claims;
};
BuyPage read_buy_page(const base::Json& document);  // user error with the place

// One statement against the plan of its job on its GPUs.
struct CheckedBuyClaim {
  bool holds = false;
  std::string because;  // with the numbers
};
CheckedBuyClaim check_buy_claim(const BuyClaim& claim, const planning::Plan& plan);

// Two sections of the paper; `parts` is what the parts of the list cost, nothing: there is no list.
void add_buy_page(const BuyPage& page, const std::optional<Money>& parts, const AdviceRequest& request, Advice& advice);

}  // namespace lockstep::advice
