// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::step {

// From now on the C library keeps what is freed instead of giving it back to the kernel: a training step asks for the
// same hundreds of megabytes again and again, and each page would be faulted in and zeroed again. Once per process,
// before the first step.
void keep_freed_memory();

}  // namespace lockstep::step
