// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/loader/uring_door.h"

namespace lockstep::loader {

// Threads that read with pread, as many as there are reads under way and 16 at most (or `depth`): right wherever there
// is no io_uring. They end with the ring, which waits for the reads that are under way.
std::unique_ptr<ReadRing> make_pread_ring(int depth);

}  // namespace lockstep::loader
