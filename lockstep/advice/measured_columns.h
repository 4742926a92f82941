// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/advice/measured_table.h"
#include "lockstep/advice/paper.h"

namespace lockstep::advice {

// Behind the columns of a grid that has a line for each of the table's rows, in order, what was measured beside the
// rates: the range of the efficiency, communication hidden, planned rate, metric. A column that no row has is left out.
void add_measured_columns(const MeasuredTable& table, Paper::Grid& grid);

}  // namespace lockstep::advice
