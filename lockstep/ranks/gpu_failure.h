// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "lockstep/base/error.h"

namespace lockstep::ranks {

// What CUDA or libtorch said, as an error of ours: whose, what, and the fix. Nothing: these words mean no failure of a
// GPU that is known here. `words`: one line.
std::optional<base::Error> gpu_failure(const std::string& words);

}  // namespace lockstep::ranks
