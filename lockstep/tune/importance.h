// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lockstep/tune/space.h"
#include "lockstep/tune/trials.h"

namespace lockstep::tune {

// How much each parameter decides whether a trial is among the best tenth, as shares of 1, largest first: PED-ANOVA,
// the Pearson divergence of the density of the best trials' values from that of all trials' (S. Watanabe et al., IJCAI
// 2023). Empty below 10 complete trials.
std::vector<std::pair<std::string, double>> importances(const Space& space, const std::vector<Trial>& trials,
                                                        bool maximize);

}  // namespace lockstep::tune
