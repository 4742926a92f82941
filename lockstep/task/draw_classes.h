// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/base/json.h"
#include "lockstep/image/image.h"

namespace lockstep::task {

// Writes {"classes": [{"name", "probability"}]} in the lower left corner of the image: the most probable, and those of
// at least 0.1, three at most. True: it was such a record.
bool draw_classes(const base::Json& record, image::Image& image);

}  // namespace lockstep::task
