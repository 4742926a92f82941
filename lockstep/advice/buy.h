// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/advice/advise.h"
#include "lockstep/advice/cpu_load.h"
#include "lockstep/advice/workstation.h"

namespace lockstep::advice {

// `lockstep plan --advise buy --budget 9800GBP --jobs a.json,b.json [--cpu-load psp=72@96] [--prices my.csv] [--against
// rtx3090*2,...]`: the workstation, built of the catalogue's parts, that finishes the list of jobs first.
Advice advise_buy(const AdviceRequest& request);

// One job on one build.
struct JobTime {
  double alone = 0;      // hours on one GPU; 0: it does not fit
  double together = 0;   // hours on all GPUs; 0: likewise, or there is but one GPU
  std::string how = {};  // what had to change: "amp, micro-batch 16"
};

// Hours until every job is done: each on a GPU of its own, longest first, or one after the other on all GPUs, whichever
// is less. Jobs that do not fit are not counted.
double list_hours(std::span<const JobTime> jobs, int64_t gpus);

}  // namespace lockstep::advice
