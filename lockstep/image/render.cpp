// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/render.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::image {
namespace {

void normalise(float* pixels, int64_t num_pixels, const Normalisation& by) {
  for (int64_t i = 0; i < num_pixels; ++i) {
    for (size_t c = 0; c < 3; ++c, ++pixels) *pixels = (*pixels - by.mean[c]) / by.std[c];
  }
}

}  // namespace

Normalisation normalisation_of(const spec::Data& data) {
  base::ensure(data.mean.size() == 3 && data.std.size() == 3, "mean and std of three channels");
  Normalisation normalisation;
  for (size_t c = 0; c < 3; ++c) {
    normalisation.mean[c] = static_cast<float>(data.mean[c]);
    normalisation.std[c] = static_cast<float>(data.std[c]);
  }
  return normalisation;
}

Renderer::Renderer(const spec::Data& data) : data_(data), normalisation_(normalisation_of(data)) {}

void Renderer::center(std::span<const std::byte> file, PixelTarget out) {
  started_ = std::chrono::steady_clock::now();
  const ImageInfo info = reader_.open(file);
  const View view = center_view(info.width, info.height, data_);
  show(view, part_for(view, info, 1), out);
}

void Renderer::random(std::span<const std::byte> file, const base::Random& numbers, PixelTarget out) {
  started_ = std::chrono::steady_clock::now();
  const ImageInfo info = reader_.open(file);
  const View view = random_view(info.width, info.height, data_, numbers);
  show(view, part_for(view, info, 8), out);
}

ImageInfo Renderer::chosen(std::span<const std::byte> file, const std::function<View(const ImageInfo&)>& choose,
                           int64_t max_denominator, PixelTarget out) {
  started_ = std::chrono::steady_clock::now();
  const ImageInfo info = reader_.open(file);
  const View view = choose(info);
  const int64_t width = view.x.num_outputs, height = view.y.num_outputs;
  base::ensure(width <= data_.image_size.width && height <= data_.image_size.height, "a view within the image size");
  show(view, part_for(view, info, max_denominator), out);
  spread(width, height, out);
  return info;
}

void Renderer::noise(base::Random numbers, PixelTarget out) {
  const int64_t num_pixels = data_.image_size.pixels();
  floats_.resize(static_cast<size_t>(num_pixels * 3));
  for (int64_t i = 0; i < num_pixels; ++i) {
    const uint32_t bits = numbers.bits();
    for (int c = 0; c < 3; ++c) {
      floats_[static_cast<size_t>(3 * i + c)] = static_cast<float>(bits >> (8 * c) & 0xFF) / 255;
    }
  }
  pack(out);
}

void Renderer::blank(PixelTarget out) {
  erase({0, 0, data_.image_size.width, data_.image_size.height}, data_.image_size.width, out);
}

// From 0 .. 1 to the target.
void Renderer::pack(PixelTarget out) {
  const auto count = static_cast<int64_t>(floats_.size());
  if (out.bytes) return pack_bytes(floats_.data(), count, out.bytes);
  normalise(floats_.data(), count / 3, normalisation_);
  if (out.halves) return pack_halves(floats_.data(), count, out.halves);
  std::copy(floats_.begin(), floats_.end(), out.floats);
}

void Renderer::erase(const Rectangle& erased, int64_t width, PixelTarget out) const {
  for (int64_t row = erased.y; row < erased.y + erased.height; ++row) {
    const int64_t begin = (row * width + erased.x) * 3, count = erased.width * 3;
    if (out.floats) std::fill_n(out.floats + begin, count, 0.0f);
    if (out.halves) std::fill_n(out.halves + begin, count, uint16_t{0});
    for (int64_t i = 0; out.bytes && i < count; ++i) {
      const float mean = normalisation_.mean[static_cast<size_t>(i % 3)];
      pack_bytes(&mean, 1, out.bytes + begin + i);
    }
  }
}

// From [height, width, 3], without gaps, to the upper left corner of the whole size.
void Renderer::spread(int64_t width, int64_t height, PixelTarget out) const {
  const spec::ImageSize& size = data_.image_size;
  if (width == size.width && height == size.height) return;
  const auto move = [&](auto* pixels) {
    if (!pixels) return;
    for (int64_t row = height - 1; row > 0; --row) {  // from the last one: none is overwritten before it was moved
      std::copy_backward(pixels + row * width * 3, pixels + (row + 1) * width * 3,
                         pixels + (row * size.width + width) * 3);
    }
  };
  move(out.floats);
  move(out.halves);
  move(out.bytes);
  erase({width, 0, size.width - width, height}, size.width, out);
  erase({0, height, size.width, size.height - height}, size.width, out);
}

void Renderer::change(const View& view, float* out) {
  shown_.width = view.x.num_outputs;
  shown_.height = view.y.num_outputs;
  shown_.pixels.resize(static_cast<size_t>(shown_.width * shown_.height * 3));
  for (size_t i = 0; i < shown_.pixels.size(); ++i)
    shown_.pixels[i] = static_cast<uint8_t>(std::floor(out[i] * 255 + 0.5f));
  for (const Change& each : view.changes) apply(each, shown_, scratch_);
  for (size_t i = 0; i < shown_.pixels.size(); ++i) out[i] = static_cast<float>(shown_.pixels[i]) / 255;
}

// Colour works on 0 .. 1.
void Renderer::show_changed(const View& view, const Axis& x, const Axis& y, float* out) {
  resampler_.run(part_.image, x, y, {}, out);
  if (!view.changes.empty()) change(view, out);
  change_colour(out, view.x.num_outputs * view.y.num_outputs, view.colour);
}

void Renderer::show(const View& view, const PartRequest& request, PixelTarget out) {
  reader_.read(request, part_);
  decode_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  const Axis x = axis_in_part(view.x, part_.x, part_.image.width, part_.denominator);
  const Axis y = axis_in_part(view.y, part_.y, part_.image.height, part_.denominator);
  const int64_t num_pixels = view.x.num_outputs * view.y.num_outputs;
  if (view.colour == Colour{} && view.changes.empty()) {
    resampler_.run(part_.image, x, y, normalisation_, out);
  } else if (out.floats) {
    show_changed(view, x, y, out.floats);
    normalise(out.floats, num_pixels, normalisation_);
  } else {
    floats_.resize(static_cast<size_t>(num_pixels * 3));
    show_changed(view, x, y, floats_.data());
    pack(out);
  }
  erase(view.erased, view.x.num_outputs, out);
}

}  // namespace lockstep::image
