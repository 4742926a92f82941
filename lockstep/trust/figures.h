// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/trust/calibration.h"
#include "lockstep/trust/class_rows.h"

namespace lockstep::trust {

// How far a network can be trusted, found on rows that were neither trained on nor calibrated with: the member "trust"
// of eval.json (docs/trust.md). `calibration` none: only what needs none.
// {"rows", "top1": {"value", "low", "high"}, "raw": Reliability, "calibrated": Reliability, "temperature",
//  "risk_coverage", "sets": [{"method", "coverage", "found", "low", "high", "size", "single"}]}
// REQUIRES: rows.
base::Json trust_figures(const ClassRows& rows, const std::optional<Calibration>& calibration);

// Samples whose label may be wrong: {"found", "shown": [{"sample", "given", "suggested", "score"}]}; names by label.
base::Json label_figures(const ClassRows& rows, double temperature, const std::vector<std::string>& classes,
                         size_t most);

// By value of a column: [{"value", "samples", "top1", "low", "high"}], weakest first. `values` by row.
base::Json group_figures(const ClassRows& rows, const std::vector<std::string>& values);

// The three for a terminal.
std::string trust_text(const base::Json& figures);
std::string groups_text(const base::Json& groups, const std::string& column);

}  // namespace lockstep::trust
