// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/radar/frame_strip.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"

namespace lockstep::task {

uint8_t code_of_dbz(double dbz) {
  if (std::isnan(dbz)) return kCodeMissing;
  if (std::isinf(dbz) && dbz < 0) return kCodeDry;
  return static_cast<uint8_t>(std::clamp(std::round(2 * dbz + 66), 2.0, 255.0));
}

double pixel_of_dbz(double dbz) {
  return (dbz - kLowestDbz) / kDbzRange;
}

float pixel_of_code(uint8_t code) {
  if (code == kCodeMissing) return kMissingPixel;
  if (code == kCodeDry) return 0;
  return static_cast<float>(std::clamp(pixel_of_dbz(dbz_of_code(code)), 0.0, 1.0));
}

double RainLaw::dbz(double rate) const {
  return 10 * std::log10(factor * std::pow(rate, exponent));
}

double RainLaw::rate(double dbz) const {
  return std::pow(std::pow(10, dbz / 10) / factor, 1 / exponent);
}

std::string strip_file(const Frames& frames) {
  image::Image strip(frames.width, frames.count * frames.height);
  for (size_t i = 0; i < frames.codes.size(); ++i) {
    for (size_t c = 0; c < 3; ++c) strip.pixels[3 * i + c] = frames.codes[i];
  }
  return image::encode_png(strip);
}

Frames frames_of(const image::Image& strip, int64_t height, int64_t width) {
  if (strip.width != width || strip.height % height != 0 || strip.height == 0) {
    throw base::Error(base::Blame::user,
                      base::text("wrong grid: a strip of ", strip.width, " x ", strip.height,
                                 " pixels is no sequence of frames of ", width, " x ", height, " (data.image_size)"),
                      "data.image_size as the data were prepared (prep --grid)");
  }
  Frames frames{strip.height / height, height, width, {}};
  frames.codes.reserve(static_cast<size_t>(strip.height * width));
  for (size_t i = 0; i < strip.pixels.size(); i += 3) frames.codes.push_back(strip.pixels[i]);
  return frames;
}

Frames read_strip(std::span<const std::byte> file, int64_t height, int64_t width) {
  return frames_of(image::decode_image(file), height, width);
}

}  // namespace lockstep::task
