// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/objective/objective.h"

namespace lockstep::objective {

// A sentence for an image, each word from the true ones before it. A row's loss is the mean cross-entropy of its words
// and caption.coverage times the mean over the places of (1 - sum over the words of the attention)^2 (Xu et al. 2015,
// "doubly stochastic"). Fields "tokens" and "length"; outputs as task/caption.h has them.
std::shared_ptr<const Objective> make_caption(const spec::Job& job);

}  // namespace lockstep::objective
