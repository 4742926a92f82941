// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/objective/objective.h"

namespace lockstep::objective {

// Frames that follow, pixel by pixel. Fields "frames" and "targets" (-1: not measured, no part); output "forecast",
// [rows, outputs, 1, H, W].
std::shared_ptr<const Objective> make_nowcast(const spec::Nowcast& how);

}  // namespace lockstep::objective
