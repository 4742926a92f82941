// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lockstep/image/detection_view.h"
#include "lockstep/image/image.h"
#include "lockstep/image/mask.h"

// Drawing on images for people to look at: overlays, contact sheets. Whatever lies outside of the image is cut off.
namespace lockstep::image {

struct Color {
  uint8_t red = 0;
  uint8_t green = 0;
  uint8_t blue = 0;

  bool operator==(const Color&) const = default;
};

// Of class `label`: 20 colours that are easy to tell apart, then from the first on again.
Color class_color(int64_t label);
// Black or white, whichever is read more easily on `paper`.
Color ink_on(Color paper);

// The frame of the box, `thickness` pixels wide, within it.
void draw_box(Image& image, const Box& box, Color color, int64_t thickness);
void fill_box(Image& image, const Box& box, Color color);

// Mixes `color` into the pixels of the mask, which covers the whole image in whatever resolution: 1 hides them.
void blend_mask(Image& image, const Mask& mask, Color color, double share);

// Letters of 5 x 7 points, one point apart, each point `zoom` pixels large. UTF-8: letters of Western European
// languages without their accents, a frame for any other character.
constexpr int64_t kLetterWidth = 6, kLetterHeight = 7;
int64_t text_width(std::string_view text, int64_t zoom);
// (x, y) is the upper left corner of the first letter.
void draw_text(Image& image, std::string_view text, int64_t x, int64_t y, Color ink, int64_t zoom);
// The same on paper of its own, one point wider all around, moved into the image where it would stand outside.
void draw_label(Image& image, std::string_view text, int64_t x, int64_t y, Color paper, int64_t zoom);

// What is large enough to be seen on an image of this size.
int64_t fitting_zoom(const Image& image);

// One object: its mask where it has one, its frame, its words above it. `box` in pixels of the image.
struct ObjectDrawing {
  Box box;
  std::string words;
  Color color;
};
void draw_object(Image& image, const ObjectDrawing& object);

}  // namespace lockstep::image
