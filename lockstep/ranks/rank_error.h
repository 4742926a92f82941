// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

#include "lockstep/base/error.h"

namespace lockstep::ranks {

// What a rank failed with, as an error for people: our own as it is; memory that was missing, on a GPU or on the host,
// and files as the machine's; all else as a bug.
base::Error rank_error(const std::exception& error);

}  // namespace lockstep::ranks
