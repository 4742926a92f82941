// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"

namespace lockstep::measure {

// Rows by the ten thousand: a JSON array with one compact row a line.
void write_rows(const base::Path& path, const base::Json& rows);
base::Json read_rows(const base::Path& path);  // of up to 256 MiB

}  // namespace lockstep::measure
