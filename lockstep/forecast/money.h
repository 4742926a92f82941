// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/catalogue/rows.h"
#include "lockstep/spec/machine.h"

namespace lockstep::forecast {

// One way to pay for a run, with everything one needs to check it.
struct Bill {
  std::string kind = {};    // rent, electricity, grant
  std::string payee = {};   // provider or machine; empty: the source does not name it
  double amount = 0;        // money, or units of a grant
  std::string unit = {};    // currency, or the unit's name
  std::string rule = {};    // how it was computed: "4.5 USD per GPU-hour x 12.3 GPU-hours"
  std::string source = {};  // of the price
  std::string date = {};    // likewise
  double limit_h = 0;       // longest session; 0: none stated
};

struct Usage {
  double seconds = 0;  // of the run, all jobs
  int64_t gpus = 0;    // 0: a CPU run
  int64_t nodes = 1;
  int64_t gpus_per_node = 0;  // 0: not known
  double joules = 0;          // at the wall, PUE counted
};

struct Costs {
  double gpu_hours = 0;
  double node_hours = 0;
  double core_hours = 0;  // 0: the cores of a node are not known
  double kwh = 0;
  std::vector<Bill> bills = {};

  const Bill* cheapest_rent() const;  // paid ones only; null: nobody is known to rent it out
};

// Every known bill: the machine document's own prices, its grant units by the centre's charging rule (whole nodes when
// the scheduler hands out whole nodes), its electricity; for a GPU without a named machine the cloud offers.
Costs estimate_costs(const Usage& usage, const spec::Machine& machine, bool named_machine, const std::string& gpu,
                     const std::vector<catalogue::Offer>& offers);

}  // namespace lockstep::forecast
