// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/base/file.h"

namespace lockstep::run {

// Cuts off what stands behind the first `bytes` of a file of records: the one that a kill has torn. In the file that
// has this name, never in one to which somebody has put a link there: a user error.
void cut_torn_record(const base::Path& path, uint64_t bytes);

}  // namespace lockstep::run
