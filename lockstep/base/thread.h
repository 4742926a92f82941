// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::base {

// A helper thread takes no signals: they belong to the thread that does the work.
void leave_signals_to_others();

}  // namespace lockstep::base
