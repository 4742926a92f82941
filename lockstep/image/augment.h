// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lockstep/base/random.h"
#include "lockstep/image/decode.h"
#include "lockstep/image/policy.h"
#include "lockstep/image/resample.h"
#include "lockstep/spec/job.h"

namespace lockstep::image {

struct Colour {  // factors; 1 leaves the image as it is
  float brightness = 1;
  float contrast = 1;
  float saturation = 1;
  float hue = 0;    // turned by this much of a whole circle, -0.5 to 0.5
  float shift = 0;  // added to every channel, with the brightness

  bool operator==(const Colour&) const = default;
};

struct Rectangle {
  int64_t x = 0;
  int64_t y = 0;
  int64_t width = 0;
  int64_t height = 0;

  bool operator==(const Rectangle&) const = default;
};

// How one image of known size is shown to the network: which part, mirrored or not, and what is done to it.
struct View {
  Axis x;  // in pixels of the whole image
  Axis y;
  Colour colour = {};
  Rectangle erased = {};             // in pixels of the result; nothing when its width is 0
  std::vector<Change> changes = {};  // one after the other, on the result in 8 bits

  bool operator==(const View&) const = default;
};

// Evaluation, as torchvision's Resize(round(image_size / center_crop)) and CenterCrop(image_size). Where image_size is
// no square, the smallest resize that covers it.
View center_view(int64_t width, int64_t height, const spec::Data& data);

// The whole image, stretched to the size: what lies where in it lies there in the result.
View whole_view(int64_t width, int64_t height, const spec::ImageSize& size);

// Training: RandomResizedCrop and a mirror; `strong` adds colour and erasing, `rand` and `trivial` their policies;
// `none` is the centre view. Everything that is random comes from `random`.
View random_view(int64_t width, int64_t height, const spec::Data& data, base::Random random);

// The part of the image that the view needs. Up to 1 / max_denominator it is decoded at the smallest scale that need
// not be enlarged again: 1.3 to 3 times as fast, and 2/255 off in the mean, so evaluation takes 1.
PartRequest part_for(const View& view, const ImageInfo& info, int64_t max_denominator);

// The view's axis in the coordinates of a decoded part.
Axis axis_in_part(const Axis& axis, int64_t part_begin, int64_t part_size, int64_t denominator);

// On `num_pixels` RGB pixels in 0 .. 1, in place: brightness, then contrast about the mean grey, then saturation, then
// hue (its circle as HSV has it). As torchvision's, in this order.
void change_colour(float* pixels, int64_t num_pixels, const Colour& colour);

}  // namespace lockstep::image
