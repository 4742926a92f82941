// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::loader {

// What a thread beside the training does to itself first: takes a name (15 characters are kept), stands back behind the
// threads that compute (SCHED_BATCH, nice 5; wishes that some containers refuse), and leaves signals to those who wait
// for them.
void settle_quiet_thread(const std::string& name);

// Keeps the calling thread off the first `num_cores` cores of those it may use, when at least twice as many remain;
// else does nothing. True: done.
bool leave_cores_free(int64_t num_cores);

}  // namespace lockstep::loader
