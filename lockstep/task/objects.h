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
  int64_t number = 0;       // among the objects of the sample
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
  std::vector<std::string> left_out = {};  // objects that are none, each with its number and the reason
};

// The "json" member of a sample as prep stores it from COCO and KITTI: {"width", "height", "objects": [{"bbox",
// "category" or "label", ...}]}; without objects there are none on the image. An object whose
// box is no four numbers, has a size below 0, or whose class is not among `classes`, is left out and told: one bad line
// of another maker costs no image. KITTI's DontCare is no class but a crowd: what is found there is neither right nor
// wrong. User error for a member that is none.
AnnotatedImage read_objects(std::span<const std::byte> member, const std::vector<std::string>& classes);
AnnotatedImage read_objects(const base::Json& document, const std::vector<std::string>& classes);

// Objects whose outline cannot be read (a polygon of two corners, runs of another size) lose it, as prep does it: the
// box stays, that mask is neither learnt nor scored. Told in left_out.
void drop_bad_outlines(AnnotatedImage& image);

// What an encoder of annotated images gives as Encoder::annotation(): the member itself or, of an image that nobody
// annotated, its size.
std::string annotation_text(std::span<const std::byte> member);
std::string annotation_text(int64_t width, int64_t height);
// The same with what is known of the image besides.
std::string annotation_with_columns(const std::string& annotation, base::Json columns);

}  // namespace lockstep::task
