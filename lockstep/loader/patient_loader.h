// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/loader/loader.h"

namespace lockstep::loader {

// The same loader, whose end does not wait for ever: a thread that hangs in a read (a file server that does not answer)
// is left behind after `seconds`, with all that it uses.
std::unique_ptr<Loader> with_bounded_end(std::unique_ptr<Loader> loader, double seconds);

// Some thread of this process was left behind and still hangs: the process must be left by _exit, which does not take
// apart what that one uses. One whose read has come back after all is ended here.
bool left_threads_behind();

}  // namespace lockstep::loader
