// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/base/json.h"
#include "lockstep/run/folder.h"

namespace lockstep::verbs::report {

// Everything the page shows, from the run folder alone: journal, job, evaluation, thumbnails, plan. What is not there
// yet is left out. Curves are thinned to at most 600 points. `weights`: "best", "last" or a step, of which the figures
// shall be; empty: those of eval, else of the best. User error when eval took others.
base::Json gather_report(const run::RunPaths& paths, const std::string& weights = "");

// One self-contained HTML page. Every text in `data` reaches the page as data, never as markup.
std::string render_report(const base::Json& data);

}  // namespace lockstep::verbs::report
