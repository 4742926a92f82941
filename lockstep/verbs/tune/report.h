// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/base/json.h"
#include "lockstep/tune/partition_run.h"
#include "lockstep/tune/study_run.h"

namespace lockstep::verbs::tune {

// Everything the page of a study shows: trials with their settings, curves and costs, importances, the best so far.
base::Json gather_study(const spec::Study& study, const lockstep::tune::Space& space,
                        const lockstep::tune::Trials& trials);
std::string render_study(const base::Json& data);

// Likewise of a partitioned space, with at most 1,500 of its points.
base::Json gather_partition(const spec::Study& study, const lockstep::tune::Space& space,
                            const lockstep::tune::Partitioned& partitioned);
std::string partition_text(const base::Json& data);  // for a terminal
std::string render_partition(const base::Json& data);

}  // namespace lockstep::verbs::tune
