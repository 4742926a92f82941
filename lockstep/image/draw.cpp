// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/draw.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep::image {
namespace {

using Letter = std::array<uint8_t, 5>;

// Five columns of seven points a letter, the lowest bit on top: the printable characters of ASCII from the blank on.
constexpr std::array<Letter, 95> kLetters = {{
    {0x00, 0x00, 0x00, 0x00, 0x00}, {0x00, 0x00, 0x5F, 0x00, 0x00}, {0x00, 0x07, 0x00, 0x07, 0x00},  //   ! "
    {0x14, 0x7F, 0x14, 0x7F, 0x14}, {0x24, 0x2A, 0x7F, 0x2A, 0x12}, {0x23, 0x13, 0x08, 0x64, 0x62},  // # $ %
    {0x36, 0x49, 0x56, 0x20, 0x50}, {0x00, 0x08, 0x07, 0x03, 0x00}, {0x00, 0x1C, 0x22, 0x41, 0x00},  // & ' (
    {0x00, 0x41, 0x22, 0x1C, 0x00}, {0x2A, 0x1C, 0x7F, 0x1C, 0x2A}, {0x08, 0x08, 0x3E, 0x08, 0x08},  // ) * +
    {0x00, 0x50, 0x30, 0x00, 0x00}, {0x08, 0x08, 0x08, 0x08, 0x08}, {0x00, 0x60, 0x60, 0x00, 0x00},  // , - .
    {0x20, 0x10, 0x08, 0x04, 0x02}, {0x3E, 0x51, 0x49, 0x45, 0x3E}, {0x00, 0x42, 0x7F, 0x40, 0x00},  // / 0 1
    {0x72, 0x49, 0x49, 0x49, 0x46}, {0x21, 0x41, 0x49, 0x4D, 0x33}, {0x18, 0x14, 0x12, 0x7F, 0x10},  // 2 3 4
    {0x27, 0x45, 0x45, 0x45, 0x39}, {0x3C, 0x4A, 0x49, 0x49, 0x31}, {0x41, 0x21, 0x11, 0x09, 0x07},  // 5 6 7
    {0x36, 0x49, 0x49, 0x49, 0x36}, {0x46, 0x49, 0x49, 0x29, 0x1E}, {0x00, 0x00, 0x14, 0x00, 0x00},  // 8 9 :
    {0x00, 0x40, 0x34, 0x00, 0x00}, {0x00, 0x08, 0x14, 0x22, 0x41}, {0x14, 0x14, 0x14, 0x14, 0x14},  // ; < =
    {0x00, 0x41, 0x22, 0x14, 0x08}, {0x02, 0x01, 0x59, 0x09, 0x06}, {0x3E, 0x41, 0x5D, 0x59, 0x4E},  // > ? @
    {0x7C, 0x12, 0x11, 0x12, 0x7C}, {0x7F, 0x49, 0x49, 0x49, 0x36}, {0x3E, 0x41, 0x41, 0x41, 0x22},  // A B C
    {0x7F, 0x41, 0x41, 0x41, 0x3E}, {0x7F, 0x49, 0x49, 0x49, 0x41}, {0x7F, 0x09, 0x09, 0x09, 0x01},  // D E F
    {0x3E, 0x41, 0x41, 0x51, 0x73}, {0x7F, 0x08, 0x08, 0x08, 0x7F}, {0x00, 0x41, 0x7F, 0x41, 0x00},  // G H I
    {0x20, 0x40, 0x41, 0x3F, 0x01}, {0x7F, 0x08, 0x14, 0x22, 0x41}, {0x7F, 0x40, 0x40, 0x40, 0x40},  // J K L
    {0x7F, 0x02, 0x1C, 0x02, 0x7F}, {0x7F, 0x04, 0x08, 0x10, 0x7F}, {0x3E, 0x41, 0x41, 0x41, 0x3E},  // M N O
    {0x7F, 0x09, 0x09, 0x09, 0x06}, {0x3E, 0x41, 0x51, 0x21, 0x5E}, {0x7F, 0x09, 0x19, 0x29, 0x46},  // P Q R
    {0x26, 0x49, 0x49, 0x49, 0x32}, {0x03, 0x01, 0x7F, 0x01, 0x03}, {0x3F, 0x40, 0x40, 0x40, 0x3F},  // S T U
    {0x1F, 0x20, 0x40, 0x20, 0x1F}, {0x3F, 0x40, 0x38, 0x40, 0x3F}, {0x63, 0x14, 0x08, 0x14, 0x63},  // V W X
    {0x03, 0x04, 0x78, 0x04, 0x03}, {0x61, 0x59, 0x49, 0x4D, 0x43}, {0x00, 0x7F, 0x41, 0x41, 0x00},  // Y Z [
    {0x02, 0x04, 0x08, 0x10, 0x20}, {0x00, 0x41, 0x41, 0x7F, 0x00}, {0x04, 0x02, 0x01, 0x02, 0x04},  // \ ] ^
    {0x40, 0x40, 0x40, 0x40, 0x40}, {0x00, 0x03, 0x07, 0x08, 0x00}, {0x20, 0x54, 0x54, 0x78, 0x40},  // _ ` a
    {0x7F, 0x28, 0x44, 0x44, 0x38}, {0x38, 0x44, 0x44, 0x44, 0x28}, {0x38, 0x44, 0x44, 0x28, 0x7F},  // b c d
    {0x38, 0x54, 0x54, 0x54, 0x18}, {0x00, 0x08, 0x7E, 0x09, 0x02}, {0x0C, 0x52, 0x52, 0x52, 0x3E},  // e f g
    {0x7F, 0x08, 0x04, 0x04, 0x78}, {0x00, 0x44, 0x7D, 0x40, 0x00}, {0x20, 0x40, 0x40, 0x3D, 0x00},  // h i j
    {0x7F, 0x10, 0x28, 0x44, 0x00}, {0x00, 0x41, 0x7F, 0x40, 0x00}, {0x7C, 0x04, 0x78, 0x04, 0x78},  // k l m
    {0x7C, 0x08, 0x04, 0x04, 0x78}, {0x38, 0x44, 0x44, 0x44, 0x38}, {0x7C, 0x14, 0x14, 0x14, 0x08},  // n o p
    {0x08, 0x14, 0x14, 0x18, 0x7C}, {0x7C, 0x08, 0x04, 0x04, 0x08}, {0x48, 0x54, 0x54, 0x54, 0x24},  // q r s
    {0x04, 0x04, 0x3F, 0x44, 0x24}, {0x3C, 0x40, 0x40, 0x20, 0x7C}, {0x1C, 0x20, 0x40, 0x20, 0x1C},  // t u v
    {0x3C, 0x40, 0x30, 0x40, 0x3C}, {0x44, 0x28, 0x10, 0x28, 0x44}, {0x0C, 0x50, 0x50, 0x50, 0x3C},  // w x y
    {0x44, 0x64, 0x54, 0x4C, 0x44}, {0x00, 0x08, 0x36, 0x41, 0x00}, {0x00, 0x00, 0x77, 0x00, 0x00},  // z { |
    {0x00, 0x41, 0x36, 0x08, 0x00}, {0x02, 0x01, 0x02, 0x04, 0x02},                                  // } ~
}};
constexpr Letter kUnknown = {0x7F, 0x41, 0x41, 0x41, 0x7F};

// U+00C0 to U+00FF without their accents.
constexpr std::string_view kPlain = "AAAAAAACEEEEIIIIDNOOOOOxOUUUUYPsaaaaaaaceeeeiiiidnooooo/ouuuuypy";

// One entry a character; bytes that are no UTF-8 count as characters that are not known.
template <class Visit>
void for_each_letter(std::string_view text, const Visit& visit) {
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<uint8_t>(text[i++]);
    uint32_t point = first < 0x80 ? first : first >= 0xF0 ? first & 7U : first >= 0xE0 ? first & 15U : first & 31U;
    while (i < text.size() && (static_cast<uint8_t>(text[i]) & 0xC0U) == 0x80) {
      point = point << 6U | (static_cast<uint8_t>(text[i++]) & 63U);
    }
    if (point >= 0xC0 && point <= 0xFF) point = static_cast<uint8_t>(kPlain[point - 0xC0]);
    visit(point >= 0x20 && point < 0x7F ? kLetters[point - 0x20] : kUnknown);
  }
}

void put_pixel(uint8_t* pixel, Color color) {
  pixel[0] = color.red;
  pixel[1] = color.green;
  pixel[2] = color.blue;
}

// [left, right) x [top, bottom), as far as the image goes.
void fill_pixels(Image& image, int64_t left, int64_t top, int64_t right, int64_t bottom, Color color) {
  left = std::clamp<int64_t>(left, 0, image.width);
  right = std::clamp<int64_t>(right, 0, image.width);
  bottom = std::min(bottom, image.height);
  for (int64_t y = std::max<int64_t>(top, 0); y < bottom; ++y) {
    for (int64_t x = left; x < right; ++x) put_pixel(image.row(y) + 3 * x, color);
  }
}

struct PixelBox {
  int64_t left, top, right, bottom;
};

// Clamped first: a coordinate that a network made up may be anything but a pixel.
PixelBox to_pixels(const Image& image, const Box& box) {
  const auto pixel = [](double value, int64_t most) {
    return std::isnan(value) ? 0 : std::llround(std::clamp(value, -1.0, static_cast<double>(most) + 1));
  };
  return {pixel(box.left, image.width), pixel(box.top, image.height), pixel(box.right, image.width),
          pixel(box.bottom, image.height)};
}

uint8_t mix(uint8_t below, uint8_t above, double share) {
  return static_cast<uint8_t>(std::lround(below + share * (above - below)));
}

}  // namespace

Color class_color(int64_t label) {
  static constexpr std::array<Color, 20> kColors = {{{230, 25, 75},  {60, 180, 75},   {255, 225, 25}, {0, 130, 200},
                                                     {245, 130, 48}, {145, 30, 180},  {70, 240, 240}, {240, 50, 230},
                                                     {210, 245, 60}, {250, 190, 212}, {0, 128, 128},  {220, 190, 255},
                                                     {170, 110, 40}, {255, 250, 200}, {128, 0, 0},    {170, 255, 195},
                                                     {128, 128, 0},  {255, 215, 180}, {0, 0, 128},    {128, 128, 128}}};
  const auto count = static_cast<int64_t>(kColors.size());
  return kColors[static_cast<size_t>((label % count + count) % count)];
}

Color ink_on(Color paper) {
  const double light = 0.299 * paper.red + 0.587 * paper.green + 0.114 * paper.blue;
  return light > 140 ? Color{0, 0, 0} : Color{255, 255, 255};
}

void fill_box(Image& image, const Box& box, Color color) {
  const PixelBox at = to_pixels(image, box);
  fill_pixels(image, at.left, at.top, at.right, at.bottom, color);
}

void draw_box(Image& image, const Box& box, Color color, int64_t thickness) {
  const PixelBox at = to_pixels(image, box);
  const int64_t wide = std::min(thickness, std::max<int64_t>(1, (at.right - at.left) / 2));
  const int64_t high = std::min(thickness, std::max<int64_t>(1, (at.bottom - at.top) / 2));
  fill_pixels(image, at.left, at.top, at.right, at.top + high, color);
  fill_pixels(image, at.left, at.bottom - high, at.right, at.bottom, color);
  fill_pixels(image, at.left, at.top, at.left + wide, at.bottom, color);
  fill_pixels(image, at.right - wide, at.top, at.right, at.bottom, color);
}

void blend_mask(Image& image, const Mask& mask, Color color, double share) {
  for (int64_t y = 0; y < image.height; ++y) {
    const int64_t from_row = y * mask.height / image.height * mask.width;
    for (int64_t x = 0; x < image.width; ++x) {
      if (mask.inside[static_cast<size_t>(from_row + x * mask.width / image.width)] == 0) continue;
      uint8_t* pixel = image.row(y) + 3 * x;
      put_pixel(pixel,
                {mix(pixel[0], color.red, share), mix(pixel[1], color.green, share), mix(pixel[2], color.blue, share)});
    }
  }
}

int64_t text_width(std::string_view text, int64_t zoom) {
  int64_t letters = 0;
  for_each_letter(text, [&](const Letter&) { ++letters; });
  return letters * kLetterWidth * zoom;
}

void draw_text(Image& image, std::string_view text, int64_t x, int64_t y, Color ink, int64_t zoom) {
  for_each_letter(text, [&](const Letter& letter) {
    for (int64_t column = 0; column < static_cast<int64_t>(letter.size()); ++column) {
      for (int64_t row = 0; row < kLetterHeight; ++row) {
        if ((letter[static_cast<size_t>(column)] >> row & 1) == 0) continue;
        const int64_t left = x + column * zoom, top = y + row * zoom;
        fill_pixels(image, left, top, left + zoom, top + zoom, ink);
      }
    }
    x += kLetterWidth * zoom;
  });
}

void draw_label(Image& image, std::string_view text, int64_t x, int64_t y, Color paper, int64_t zoom) {
  if (text.empty()) return;
  const int64_t width = text_width(text, zoom) + zoom, height = (kLetterHeight + 2) * zoom;
  x = std::max<int64_t>(0, std::min(x, image.width - width));
  y = std::max<int64_t>(0, std::min(y, image.height - height));
  fill_pixels(image, x, y, x + width, y + height, paper);
  draw_text(image, text, x + zoom, y + zoom, ink_on(paper), zoom);
}

int64_t fitting_zoom(const Image& image) {
  return std::max<int64_t>(1, (std::max(image.width, image.height) + 200) / 400);
}

void draw_object(Image& image, const ObjectDrawing& object) {
  const int64_t zoom = fitting_zoom(image);
  draw_box(image, object.box, object.color, zoom);
  const PixelBox at = to_pixels(image, object.box);
  const int64_t height = (kLetterHeight + 2) * zoom;
  draw_label(image, object.words, at.left, at.top >= height ? at.top - height : at.top, object.color, zoom);
}

}  // namespace lockstep::image
