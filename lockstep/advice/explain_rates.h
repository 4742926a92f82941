// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/advice/measured_table.h"
#include "lockstep/advice/paper.h"
#include "lockstep/catalogue/catalogue.h"

namespace lockstep::advice {

// A table of rates over numbers of GPUs: efficiencies against its first row, weak or strong, and beside them what the
// collective model forecasts for the gradient where the table says its size.
base::Json explain_rates(const MeasuredTable& table, const catalogue::Catalogue& catalogue, Paper& paper);

}  // namespace lockstep::advice
