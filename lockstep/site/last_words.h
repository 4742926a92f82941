// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "lockstep/base/error.h"

namespace lockstep::site {

// Tells the error of one of several ranks on standard error, before that rank ends all of them. What fails alike on all
// ranks is told once: rank 0 speaks at once and ends the others while they wait (a launcher sends SIGTERM, which is
// heard as a wish to stop, and SIGKILL a second later). Another rank that is still there after `turn` failed alone: it
// names itself and its host, where one looks for the fault.
void tell_last_words(const base::Error& error, int64_t rank, std::chrono::milliseconds turn = std::chrono::seconds(4));

}  // namespace lockstep::site
