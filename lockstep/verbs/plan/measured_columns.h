// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/verbs/plan/measured_table.h"
#include "lockstep/verbs/plan/paper.h"

namespace lockstep::verbs {

// Behind the columns of a grid that has a line for each of the table's rows, in order, what was measured beside the
// rates: the range of the efficiency, communication hidden, planned rate, metric. A column that no row has is left out.
void add_measured_columns(const MeasuredTable& table, Paper::Grid& grid);

}  // namespace lockstep::verbs
