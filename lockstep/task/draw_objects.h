// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/base/json.h"
#include "lockstep/image/image.h"

namespace lockstep::task {

// Below this score an object is recorded, but not drawn.
constexpr double kLeastDrawn = 0.5;

// Draws {"width", "height", "objects": [{"class", "label", "score", "box": [x, y, w, h], "segmentation"}]} on the image
// that it was predicted for, in whatever size: masks first, then boxes with their names, the surest on top. "truths",
// where the record has them: the boxes of what should have been found, in white below. True: it was such a record. A
// mask that does not fit the record's size is left out.
bool draw_objects(const base::Json& record, image::Image& image);

}  // namespace lockstep::task
