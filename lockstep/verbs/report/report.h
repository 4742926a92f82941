// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/run/folder.h"

namespace lockstep::verbs::report {

// Everything the page shows, from the run folder alone: journal, job, evaluation, thumbnails, plan. What is not there
// yet is left out. Curves are thinned to at most 600 points. `weights`: "best", "last" or a step, of which the figures
// shall be; empty: those of eval, else of the best. User error when eval took others.
base::Json gather_report(const run::RunPaths& paths, const std::string& weights = "");

// Runs beside each other: of each what gather_report() has but for its mistakes, and what differs between them
// (watching/compare.h). User error for a folder that is no run.
base::Json gather_comparison(const std::vector<run::RunPaths>& runs);
std::string render_comparison(const base::Json& data);

// One self-contained HTML page. Every text in `data` reaches the page as data, never as markup.
std::string render_report(const base::Json& data);

}  // namespace lockstep::verbs::report
