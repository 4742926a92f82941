// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/file.h"

namespace lockstep::results {

struct CocoOptions {
  base::Path to;
  base::Path images = {};                 // a COCO list that says which number an image and a class has
  std::vector<std::string> classes = {};  // without one they are numbered from 1 in this order
};

struct CocoSummary {
  int64_t images = 0;  // with or without objects
  int64_t objects = 0;
  int64_t failed = 0;            // images that could not be read
  std::string unlisted_image;    // the first that the list does not have; its objects are left out
  int64_t unlisted_images = 0;   // how many
  std::string unlisted_class;    // likewise
  int64_t unlisted_objects = 0;  // of such classes
  base::Path table = {};         // where the numbers stand; empty: in CocoOptions::images
};

// The objects of a results file as COCO has results: [{"image_id", "category_id", "bbox", "score", "segmentation"}].
// Images are found in the list by their file_name: the longest end of a path counts. Without a list they are numbered
// from 1 in their order, and the numbers stand in a table beside: {"images", "categories"}.
// Holds one record at a time. User error for records without objects, and for a list that is none.
CocoSummary write_coco(const base::Path& results, const CocoOptions& options);

}  // namespace lockstep::results
