// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/augment.h"

#include <algorithm>
#include <cmath>

namespace lockstep::image {
namespace {

constexpr double kMinRatio = 3.0 / 4, kMaxRatio = 4.0 / 3;  // of RandomResizedCrop, as everybody has them
constexpr float kRed = 0.299f, kGreen = 0.587f, kBlue = 0.114f;

Axis crop_axis(int64_t begin, int64_t length, int64_t num_outputs) {
  return {.num_outputs = num_outputs,
          .begin = static_cast<double>(begin),
          .scale = static_cast<double>(length) / static_cast<double>(num_outputs),
          .low = begin,
          .high = begin + length};
}

Rectangle center_crop(int64_t width, int64_t height) {  // when no random one fits: the largest of allowed ratio
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  Rectangle crop{0, 0, width, height};
  if (ratio < kMinRatio) crop.height = std::llround(static_cast<double>(width) / kMinRatio);
  if (ratio > kMaxRatio) crop.width = std::llround(static_cast<double>(height) * kMaxRatio);
  crop.x = (width - crop.width) / 2;
  crop.y = (height - crop.height) / 2;
  return crop;
}

Rectangle random_crop(int64_t width, int64_t height, double min_scale, base::Random& random) {
  const auto area = static_cast<double>(width * height);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * random.uniform(min_scale, 1);
    const double ratio = std::exp(random.uniform(std::log(kMinRatio), std::log(kMaxRatio)));
    const auto w = static_cast<int64_t>(std::llround(std::sqrt(target * ratio)));
    const auto h = static_cast<int64_t>(std::llround(std::sqrt(target / ratio)));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const int64_t x = random.below(width - w + 1);
    return {x, random.below(height - h + 1), w, h};
  }
  return center_crop(width, height);
}

Rectangle random_erasure(const spec::ImageSize& size,
                         base::Random& random) {  // a quarter of the samples, 2 to 33 % of the area
  if (!random.chance(0.25)) return {};
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = static_cast<double>(size.pixels()) * random.uniform(0.02, 0.33);
    const double ratio = std::exp(random.uniform(std::log(0.3), std::log(1 / 0.3)));
    const auto w = static_cast<int64_t>(std::llround(std::sqrt(area * ratio)));
    const auto h = static_cast<int64_t>(std::llround(std::sqrt(area / ratio)));
    if (w < 1 || h < 1 || w >= size.width || h >= size.height) continue;
    const int64_t x = random.below(size.width - w + 1);
    return {x, random.below(size.height - h + 1), w, h};
  }
  return {};
}

Axis centre_axis(int64_t length, int64_t resized, int64_t size) {
  const double scale = static_cast<double>(length) / static_cast<double>(resized);
  const auto begin = static_cast<double>(std::lrint(static_cast<double>(resized - size) / 2.0));  // .5 to even
  return {.num_outputs = size, .begin = begin * scale, .scale = scale, .low = 0, .high = length};
}

float clamp01(float value) {
  return std::min(std::max(value, 0.0f), 1.0f);
}

// RGB to hue and back, without branches: channel n is V - V S max(0, min(k, 4 - k, 1)) with k = n + 6 hue (mod 6), n
// being 5, 3 and 1 (A. R. Smith, "Color gamut transform pairs", 1978, in its closed form).
void turn_hue(float* p, float turn) {
  const float high = std::max(p[0], std::max(p[1], p[2])), low = std::min(p[0], std::min(p[1], p[2]));
  const float chroma = high - low;
  if (chroma <= 0) return;  // grey has no hue
  float hue = high == p[0]   ? (p[1] - p[2]) / chroma
              : high == p[1] ? 2 + (p[2] - p[0]) / chroma
                             : 4 + (p[0] - p[1]) / chroma;
  hue += 6 * turn + 12;  // positive
  for (int c = 0; c < 3; ++c) {
    const float k = std::fmod(hue + static_cast<float>(5 - 2 * c), 6.0f);
    p[c] = clamp01(high - chroma * std::max(0.0f, std::min({k, 4 - k, 1.0f})));
  }
}

}  // namespace

View center_view(int64_t width, int64_t height, const spec::Data& data) {
  const spec::ImageSize& size = data.image_size;
  const auto with_margin = [&](int64_t side) {
    return std::max<int64_t>(std::llround(static_cast<double>(side) / data.center_crop), side);
  };
  int64_t resized_width = with_margin(size.width), resized_height = with_margin(size.height);
  // The side that must grow most decides, the other follows in proportion: nothing is stretched.
  if (resized_height * width >= resized_width * height) {
    resized_width = resized_height * width / height;
  } else {
    resized_height = resized_width * height / width;
  }
  return {.x = centre_axis(width, resized_width, size.width), .y = centre_axis(height, resized_height, size.height)};
}

View whole_view(int64_t width, int64_t height, const spec::ImageSize& size) {
  return {.x = crop_axis(0, width, size.width), .y = crop_axis(0, height, size.height)};
}

View random_view(int64_t width, int64_t height, const spec::Data& data, base::Random random) {
  if (data.augment == spec::Augment::none) return center_view(width, height, data);
  const Rectangle crop = random_crop(width, height, data.crop_scale_min, random);
  View view{.x = crop_axis(crop.x, crop.width, data.image_size.width),
            .y = crop_axis(crop.y, crop.height, data.image_size.height)};
  view.x.reversed = data.flip && random.chance(0.5);
  if (data.augment == spec::Augment::rand) view.changes = draw_rand_augment(data.image_size, random);
  if (data.augment == spec::Augment::trivial) view.changes = draw_trivial_augment(random);
  if (data.augment != spec::Augment::strong) return view;
  view.colour.brightness = static_cast<float>(random.uniform(0.6, 1.4));
  view.colour.contrast = static_cast<float>(random.uniform(0.6, 1.4));
  view.colour.saturation = static_cast<float>(random.uniform(0.6, 1.4));
  view.erased = random_erasure(data.image_size, random);
  view.colour.hue = static_cast<float>(random.uniform(-0.1, 0.1));
  return view;
}

PartRequest part_for(const View& view, const ImageInfo& info, int64_t max_denominator) {
  const auto interval = [](const Axis& axis) {  // with the filter's reach, within what may be used
    const double reach = std::max(axis.scale, 1.0) + 1;
    const double end = axis.begin + axis.scale * static_cast<double>(axis.num_outputs);
    const auto low = std::clamp(static_cast<int64_t>(std::floor(axis.begin - reach)), axis.low, axis.high - 1);
    return std::pair(low, std::clamp(static_cast<int64_t>(std::ceil(end + reach)), low + 1, axis.high));
  };
  const auto [left, right] = interval(view.x);
  const auto [top, bottom] = interval(view.y);
  PartRequest part{left, top, right - left, bottom - top, 1};
  if (info.format != ImageFormat::jpeg) return part;
  const double shrink = std::min(view.x.scale, view.y.scale);
  while (part.denominator < max_denominator && shrink >= 2 * static_cast<double>(part.denominator))
    part.denominator *= 2;
  return part;
}

Axis axis_in_part(const Axis& axis, int64_t part_begin, int64_t part_size, int64_t denominator) {
  const auto d = static_cast<double>(denominator);
  Axis inside = axis;
  inside.begin = axis.begin / d - static_cast<double>(part_begin);
  inside.scale = axis.scale / d;
  inside.low = std::clamp<int64_t>(axis.low / denominator - part_begin, 0, part_size - 1);
  inside.high =
      std::clamp<int64_t>((axis.high + denominator - 1) / denominator - part_begin, inside.low + 1, part_size);
  return inside;
}

void change_colour(float* pixels, int64_t num_pixels, const Colour& colour) {
  if (colour == Colour{}) return;
  const auto gray = [](const float* p) { return kRed * p[0] + kGreen * p[1] + kBlue * p[2]; };
  double sum = 0;
  for (int64_t i = 0; i < num_pixels; ++i) {
    float* p = pixels + 3 * i;
    for (int c = 0; c < 3; ++c) p[c] = clamp01(p[c] * colour.brightness + colour.shift);
    sum += static_cast<double>(gray(p));
  }
  const float mean = static_cast<float>(sum / static_cast<double>(num_pixels)) * (1 - colour.contrast);
  for (int64_t i = 0; i < num_pixels; ++i) {
    float* p = pixels + 3 * i;
    for (int c = 0; c < 3; ++c) p[c] = clamp01(p[c] * colour.contrast + mean);
    const float level = gray(p) * (1 - colour.saturation);
    for (int c = 0; c < 3; ++c) p[c] = clamp01(p[c] * colour.saturation + level);
  }
  for (int64_t i = 0; colour.hue != 0 && i < num_pixels; ++i) turn_hue(pixels + 3 * i, colour.hue);
}

}  // namespace lockstep::image
