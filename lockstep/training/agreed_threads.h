// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/comm/group.h"

namespace lockstep::training {

// The smallest of what the ranks name, on every rank. A sum over many numbers depends on the threads that make it:
// ranks with different ones would clip by different norms, and their weights would part.
int64_t agree_on_threads(int64_t mine, comm::Group& group);

}  // namespace lockstep::training
