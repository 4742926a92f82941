// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/base/json.h"
#include "lockstep/image/decode.h"

namespace lockstep::sources {

// Lists are drawn on images as they are stored, as a rule: COCO's own tools know no EXIF. The orientation by which that
// which is drawn on width x height comes to lie on the image as it is seen: the image's, or 1 where only the image as
// seen has that size. User error when neither has.
int orientation_of_list(const image::ImageInfo& image, int64_t width, int64_t height);

// Turns a sample with "width", "height" and "objects", as a COCO list describes it, by an EXIF orientation: "bbox",
// "segmentation" (polygons and runs, pixel by pixel; compressed ones stay so) and "keypoints".
// User error for outlines that are none.
void turn_objects(base::Json& sample, int orientation);

}  // namespace lockstep::sources
