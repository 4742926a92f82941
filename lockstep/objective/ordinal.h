// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/objective/objective.h"

namespace lockstep::objective {

// Classes in an order, by the logarithmic score of their cumulative probabilities: for each border between two
// neighbours, the cross-entropy of "the class is above it". The logits are those of a softmax, so that the
// probabilities of the borders fall from one to the next whatever the network gives. Field "label" (-1: no part);
// output "output", [rows, classes].
std::shared_ptr<const Objective> make_ordinal();

}  // namespace lockstep::objective
