// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/objective/objective.h"

namespace lockstep::objective {

// A number per sample, by its squared error. Fields "value" and "valid" (0: no part); output "output", [rows, 1].
std::shared_ptr<const Objective> make_regress();

}  // namespace lockstep::objective
