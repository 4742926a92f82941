// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::base {

// A thread beside the work takes no signal: they belong to the one that works.
void leave_signals_to_others();

}  // namespace lockstep::base
