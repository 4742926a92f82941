// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lockstep/site/batch.h"

namespace lockstep::site {

// What a job would ask PBS for.
struct PbsNeeds {
  std::string queue;  // empty: the default
  int64_t nodes = 1;
  int64_t cores = 1;         // of each node, likewise
  int64_t gpus = 0;          //
  int64_t memory = 0;        // bytes; 0: not asked for
  bool whole_nodes = false;  // nobody else's job may be there
};

// When such a job would start. PBS forecasts the start of jobs in its queue alone, and of the foremost: before one is
// submitted all that can be told is that it would start now, because enough nodes are free and nobody waits. Otherwise
// the refusal says why nothing can be told.
Prospect ask_pbs_start(const PbsNeeds& needs);

// From the answers to `qstat -Qf`, `qstat -Bf` and `pbsnodes -av`; `now` in Unix seconds.
Prospect forecast_pbs_start(const PbsNeeds& needs, std::string_view queues, std::string_view server,
                            std::string_view nodes, int64_t now);

}  // namespace lockstep::site
