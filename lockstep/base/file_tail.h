// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "lockstep/base/file.h"

namespace lockstep::base {

// The last lines of a file that somebody else writes, `bytes` at most: a line that is cut is left out, unless it is the
// only one. Empty where there is no such file.
std::string read_tail(const Path& path, size_t bytes);

}  // namespace lockstep::base
