// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/label_image.h"

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/image/png_door.h"

namespace lockstep::image {

using base::Blame;
using base::Error;
using base::text;

namespace {

constexpr const char* kLabelFix = "store the labels as a grey or paletted PNG of up to 8 bits";

PngValues read_values(std::span<const std::byte> file) {
  constexpr std::byte kFirst{0x89};
  if (file.size() < 8 || file[0] != kFirst) throw Error(Blame::user, "a label image that is no PNG", kLabelFix);
  return read_png_values(file);
}

int64_t nearest_pixel(int64_t i, int64_t from, int64_t to) {  // that of the middle of output `i`
  return (2 * i + 1) * from / (2 * to);
}

}  // namespace

Bitmap decode_labels(std::span<const std::byte> file) {
  PngValues values = read_values(file);
  if (values.channels != 1) {
    throw Error(Blame::user, text("a label image of ", values.channels, " channels: colours are no labels"), kLabelFix);
  }
  return {values.width, values.height, std::move(values.bytes)};
}

std::string encode_labels(const Bitmap& labels) {
  return encode_paletted_png(labels.width, labels.height, labels.pixels);
}

std::string resize_labels(std::span<const std::byte> file, int64_t width, int64_t height) {
  const PngValues from = read_values(file);
  if (from.channels != 1 && from.channels != 3) {
    throw Error(Blame::user, text("a label image of ", from.channels, " channels"), kLabelFix);
  }
  Image to(width, height);
  for (int64_t y = 0; y < height; ++y) {
    const int64_t row = nearest_pixel(y, from.height, height) * from.width;
    for (int64_t x = 0; x < width; ++x) {
      const int64_t pixel = (row + nearest_pixel(x, from.width, width)) * from.channels;
      for (int64_t c = 0; c < 3; ++c) {
        to.row(y)[3 * x + c] = from.bytes[static_cast<size_t>(pixel + (from.channels == 3 ? c : 0))];
      }
    }
  }
  return encode_png(to);
}

}  // namespace lockstep::image
