// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/image/detection_view.h"

namespace lockstep::task {

// One object of an annotated image, in pixels of the image as it is seen.
struct Object {
  int32_t label = 0;        // among the classes
  image::Box box;           // as annotated; it may reach beyond the image
  image::Box inside;        // the part of it that lies on the image; an area of 0: nothing does
  bool crowd = false;       // COCO: one outline around many
  double area = 0;          // as annotated (COCO: of the outline), else of the box
  double truncated = 0;     // KITTI: the share beyond the border
  int64_t occluded = 0;     // KITTI: 0 visible, 1 partly, 2 largely, 3 unknown
  base::Json outline = {};  // COCO's "segmentation"; null: there is none

  // May be learnt: something of it is on the image. What is not is left out of training and kept in the score.
  bool is_seen() const { return inside.area() > 0; }
};

struct AnnotatedImage {
  int64_t width = 0;
  int64_t height = 0;
  std::vector<Object> objects = {};
};

// The "json" member of a sample as prep stores it from COCO and KITTI: {"width", "height", "objects": [{"bbox",
// "category" or "label", ...}]}; without objects there are none on the image. User error, which names the object, for a
// box that is no four numbers, a size below 0, a class that is not among `classes`.
AnnotatedImage read_objects(std::span<const std::byte> member, const std::vector<std::string>& classes);
AnnotatedImage read_objects(const base::Json& document, const std::vector<std::string>& classes);

// What an encoder of annotated images gives as Encoder::annotation(): the member itself or, of an image that nobody
// annotated, its size.
std::string annotation_text(std::span<const std::byte> member);
std::string annotation_text(int64_t width, int64_t height);

}  // namespace lockstep::task
