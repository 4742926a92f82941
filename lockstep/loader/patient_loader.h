// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/loader/loader.h"

namespace lockstep::loader {

// The same loader, whose end does not wait for ever: a thread that hangs in a read (a file server that does not answer)
// is left behind after `seconds`, with all that it uses.
std::unique_ptr<Loader> with_bounded_end(std::unique_ptr<Loader> loader, double seconds);

// Does the work on a thread of its own, and waits for it; what it throws is thrown here. GaveUp, which names `folders`,
// when `give_up` (asked now and then, from this thread) says to wait no longer: the thread is left behind with the
// work, which must hold all that it uses.
void do_patiently(std::function<void()> work, const std::function<bool()>& give_up,
                  const std::vector<std::string>& folders);

// Some thread of this process was left behind and still hangs: the process must be left by _exit, which does not take
// apart what that one uses. One whose read has come back after all is ended here.
bool left_threads_behind();

}  // namespace lockstep::loader
