// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/base/file.h"
#include "lockstep/image/image.h"

namespace lockstep::measure {

// The same images for every loader, in each form that one of them reads.
struct ImageSet {
  base::Path folder;          // a sub-folder a class, .jpg files
  base::Path tars;            // those files in shards
  base::Path restarted_tars;  // likewise, with restart markers
  int64_t num_images = 0;
  int64_t jpeg_bytes = 0;  // of `folder`
};

constexpr int64_t kImageWidth = 500, kImageHeight = 375;
constexpr int kImageQuality = 90;

// Light and texture at every scale, as photographs have: a JPEG of it is about as large as one of a photograph.
image::Image draw_image(int64_t width, int64_t height, uint64_t number);

// Writes `num_images` of 500 x 375 pixels, quality 90, under `to`: made up, or from the JPEG and PNG files anywhere
// under `photographs`, scaled to cover and cut in the middle. User error: no photograph there.
ImageSet write_images(const base::Path& to, int64_t num_images, const std::string& photographs);

}  // namespace lockstep::measure
