// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/memory.h"

#include <malloc.h>

#include <climits>

namespace lockstep::step {

void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);  // large blocks come from the heap too, where they can be kept
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 64 << 20);
}

}  // namespace lockstep::step
