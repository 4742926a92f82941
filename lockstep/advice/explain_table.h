// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/advice/advise.h"
#include "lockstep/advice/measured_table.h"

namespace lockstep::advice {

// `lockstep plan --advise table FILE.json`: a table somebody measured, explained.
Advice advise_table(const AdviceRequest& request);

// For a table with epochs: which reading of "batch" explains the rows with one rate, the residuals, jobs under the
// walltime, the same work elsewhere. For a table of rates: efficiencies, weak or strong, and what the collective model
// says. For a workflow: Amdahl's sum for each speed-up.
Advice explain_measured(const Measured& measured, const catalogue::Catalogue& catalogue);

}  // namespace lockstep::advice
