// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/advice/measured_table.h"
#include "lockstep/advice/paper.h"
#include "lockstep/catalogue/catalogue.h"

namespace lockstep::advice {

// What "batch" means in a table of trainings: every reading fitted with one rate of a GPU, the best one row by row.
base::Json explain_reading(const MeasuredTable& table, const catalogue::Catalogue& catalogue, Paper& paper);

}  // namespace lockstep::advice
