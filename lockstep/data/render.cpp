// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/render.h"

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

void normalise(float* pixels, int64_t num_pixels, const Normalisation& by) {
  for (int64_t i = 0; i < num_pixels; ++i) {
    for (size_t c = 0; c < 3; ++c, ++pixels) *pixels = (*pixels - by.mean[c]) / by.std[c];
  }
}

}  // namespace

Renderer::Renderer(const spec::Data& data) : data_(data) {
  base::ensure(data.mean.size() == 3 && data.std.size() == 3, "mean and std of three channels");
  for (size_t c = 0; c < 3; ++c) {
    normalisation_.mean[c] = static_cast<float>(data.mean[c]);
    normalisation_.std[c] = static_cast<float>(data.std[c]);
  }
}

void Renderer::center(std::span<const std::byte> file, float* out) {
  started_ = std::chrono::steady_clock::now();
  const ImageInfo info = reader_.open(file);
  const View view = center_view(info.width, info.height, data_);
  show(view, part_for(view, info, 1), out);
}

void Renderer::random(std::span<const std::byte> file, const base::Random& numbers, float* out) {
  started_ = std::chrono::steady_clock::now();
  const ImageInfo info = reader_.open(file);
  const View view = random_view(info.width, info.height, data_, numbers);
  show(view, part_for(view, info, 8), out);
}

void Renderer::noise(base::Random numbers, float* out) {
  const int64_t num_pixels = data_.image_size * data_.image_size;
  for (int64_t i = 0; i < num_pixels; ++i, out += 3) {
    const uint32_t bits = numbers.bits();
    for (size_t c = 0; c < 3; ++c) {
      out[c] = (static_cast<float>(bits >> (8 * c) & 0xFF) / 255 - normalisation_.mean[c]) / normalisation_.std[c];
    }
  }
}

void Renderer::change(const std::vector<Change>& changes, float* out) {
  shown_.width = shown_.height = data_.image_size;
  shown_.pixels.resize(static_cast<size_t>(data_.image_size * data_.image_size * 3));
  for (size_t i = 0; i < shown_.pixels.size(); ++i) shown_.pixels[i] = static_cast<uint8_t>(out[i] * 255 + 0.5f);
  for (const Change& each : changes) apply(each, shown_, scratch_);
  for (size_t i = 0; i < shown_.pixels.size(); ++i) out[i] = static_cast<float>(shown_.pixels[i]) / 255;
}

void Renderer::show(const View& view, const PartRequest& request, float* out) {
  reader_.read(request, part_);
  decode_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  const Axis x = axis_in_part(view.x, part_.x, part_.image.width, part_.denominator);
  const Axis y = axis_in_part(view.y, part_.y, part_.image.height, part_.denominator);
  const int64_t size = data_.image_size;
  if (view.colour == Colour{} && view.changes.empty()) {
    resampler_.run(part_.image, x, y, normalisation_, out);
  } else {  // colour works on 0 .. 1
    resampler_.run(part_.image, x, y, {}, out);
    if (!view.changes.empty()) change(view.changes, out);
    change_colour(out, size * size, view.colour);
    normalise(out, size * size, normalisation_);
  }
  for (int64_t row = view.erased.y; row < view.erased.y + view.erased.height; ++row) {
    float* begin = out + (row * size + view.erased.x) * 3;
    std::fill(begin, begin + view.erased.width * 3, 0.0f);  // 0 is the mean colour
  }
}

}  // namespace lockstep::data
