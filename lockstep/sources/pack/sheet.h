// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/base/file.h"

namespace lockstep::sources {

// A JPEG with a look at a folder of shards: one row a class, the first samples of each (at most 40 classes); without
// classes some rows of samples, their boxes drawn in. Empty when there is no image.
std::string draw_sheet(const base::Path& shard_folder);

}  // namespace lockstep::sources
