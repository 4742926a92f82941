// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::base {

double steady_seconds();  // for spans: never set back
double unix_seconds();    // since 1970, as the machine's clock is set
double process_processor_seconds();
double thread_processor_seconds();  // of the thread that asks

}  // namespace lockstep::base
