// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/advice/advise.h"
#include "lockstep/advice/paper.h"
#include "lockstep/planning/plan.h"

namespace lockstep::advice {

// `lockstep plan job.json --advise cpu-or-gpu [--on i7-8700,t4,colab]`: without --on this machine's processors against
// what a newcomer can get; a processor is added where --on names none.
Advice advise_cpu_or_gpu(const AdviceRequest& request);

// Memory bandwidth, size of the data, optimization and cost, computed from this plan; a verdict. The processor is the
// plan's first machine option without a GPU. User error when the plan has no processor or no GPU.
Advice cpu_or_gpu(const planning::Plan& plan, const std::vector<catalogue::Offer>& offers);

}  // namespace lockstep::advice
