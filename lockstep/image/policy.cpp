// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/policy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

namespace lockstep::image {
namespace {

constexpr int kNumBins = 31;

struct Strengths {  // the largest of each
  double shear, translate_x, translate_y, rotate, colour;
  int posterized_bits;
};

// Where `bin` of 31 lies between none and the most; a coin decides the sign where there are two.
Change draw_change(const Strengths& most, int64_t bin, base::Random& random) {
  const double share = static_cast<double>(bin) / (kNumBins - 1);
  Change change{static_cast<Operation>(random.below(kNumOperations)), 0};
  const bool negative = random.chance(0.5);
  const auto sided = [&](double largest) { return (negative ? -share : share) * largest; };
  switch (change.operation) {
    case Operation::shear_x:
    case Operation::shear_y:
      change.magnitude = sided(most.shear);
      break;
    case Operation::translate_x:
      change.magnitude = std::trunc(sided(most.translate_x));
      break;
    case Operation::translate_y:
      change.magnitude = std::trunc(sided(most.translate_y));
      break;
    case Operation::rotate:
      change.magnitude = sided(most.rotate);
      break;
    case Operation::brightness:
    case Operation::color:
    case Operation::contrast:
    case Operation::sharpness:
      change.magnitude = sided(most.colour);
      break;
    case Operation::posterize:
      change.magnitude = 8 - std::nearbyint(share * most.posterized_bits);
      break;
    case Operation::solarize:
      change.magnitude = 255 * (1 - share);
      break;
    default:
      break;
  }
  return change;
}

uint8_t clamped(float value) {  // cut, not rounded: as the reference converts
  return static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f));
}

uint8_t gray_of(const uint8_t* pixel) {
  return static_cast<uint8_t>(0.2989f * static_cast<float>(pixel[0]) + 0.587f * static_cast<float>(pixel[1]) +
                              0.114f * static_cast<float>(pixel[2]));
}

// factor * image + (1 - factor) * other(pixel index, channel)
template <class Other>
void blend(Image& image, double factor, const Other& other) {
  const auto keep = static_cast<float>(factor), add = static_cast<float>(1 - factor);
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    std::array<uint8_t, 3> blended;
    for (size_t c = 0; c < 3; ++c) {
      blended[c] = clamped(keep * static_cast<float>(image.pixels[i + c]) + add * static_cast<float>(other(i, c)));
    }
    std::copy(blended.begin(), blended.end(), image.pixels.begin() + static_cast<ptrdiff_t>(i));
  }
}

void change_contrast(Image& image, double factor) {
  double sum = 0;
  for (size_t i = 0; i < image.pixels.size(); i += 3) sum += gray_of(&image.pixels[i]);
  const auto mean = static_cast<float>(sum / static_cast<double>(image.pixels.size() / 3));
  blend(image, factor, [mean](size_t, size_t) { return mean; });
}

// Blends with a 3 x 3 mean that counts the middle five times; the border stays.
void change_sharpness(Image& image, double factor, Image& scratch) {
  if (image.width <= 2 || image.height <= 2) return;
  scratch = image;
  const int64_t stride = image.width * 3;
  for (int64_t y = 1; y + 1 < image.height; ++y) {
    for (int64_t i = y * stride + 3; i < (y + 1) * stride - 3; ++i) {
      const uint8_t* middle = image.pixels.data() + i;
      int sum = 4 * *middle;
      for (int64_t dy = -1; dy <= 1; ++dy) {
        for (int64_t dx = -1; dx <= 1; ++dx) sum += middle[dy * stride + 3 * dx];
      }
      scratch.pixels[static_cast<size_t>(i)] = static_cast<uint8_t>(std::nearbyint(static_cast<float>(sum) / 13));
    }
  }
  blend(image, factor, [&](size_t i, size_t c) { return scratch.pixels[i + c]; });
}

void stretch_contrast(Image& image) {
  for (size_t c = 0; c < 3; ++c) {
    uint8_t low = 255, high = 0;
    for (size_t i = c; i < image.pixels.size(); i += 3) {
      low = std::min(low, image.pixels[i]);
      high = std::max(high, image.pixels[i]);
    }
    if (low == high) continue;
    const float scale = 255.0f / static_cast<float>(high - low);
    for (size_t i = c; i < image.pixels.size(); i += 3) {
      image.pixels[i] = clamped(static_cast<float>(image.pixels[i] - low) * scale);
    }
  }
}

void equalize_channels(Image& image) {
  for (size_t c = 0; c < 3; ++c) {
    std::array<int64_t, 256> counts{};
    for (size_t i = c; i < image.pixels.size(); i += 3) ++counts[image.pixels[i]];
    const auto last = std::find_if(counts.rbegin(), counts.rend(), [](int64_t count) { return count > 0; });
    const auto num_pixels = static_cast<int64_t>(image.pixels.size() / 3);
    const int64_t step = (num_pixels - *last) / 255;
    if (step == 0) continue;
    std::array<uint8_t, 256> table{};
    int64_t before = 0;
    for (size_t value = 0; value < 256; ++value) {
      table[value] = static_cast<uint8_t>(std::clamp<int64_t>((before + step / 2) / step, 0, 255));
      before += counts[value];
    }
    table[0] = 0;
    for (size_t i = c; i < image.pixels.size(); i += 3) image.pixels[i] = table[image.pixels[i]];
  }
}

// Each pixel from the nearest of the source at matrix * (x, y, 1), both from the middle of the image.
void warp(Image& image, const std::array<double, 6>& matrix, Image& scratch) {
  const int64_t w = image.width, h = image.height;
  scratch.width = w;
  scratch.height = h;
  scratch.pixels.assign(image.pixels.size(), 0);
  const double half_w = static_cast<double>(w) / 2, half_h = static_cast<double>(h) / 2;
  for (int64_t row = 0; row < h; ++row) {
    for (int64_t column = 0; column < w; ++column) {
      const double x = static_cast<double>(column) + 0.5 - half_w, y = static_cast<double>(row) + 0.5 - half_h;
      const double from_x = std::nearbyint(matrix[0] * x + matrix[1] * y + matrix[2] + half_w - 0.5);
      const double from_y = std::nearbyint(matrix[3] * x + matrix[4] * y + matrix[5] + half_h - 0.5);
      if (from_x < 0 || from_y < 0 || from_x >= static_cast<double>(w) || from_y >= static_cast<double>(h)) continue;
      const uint8_t* pixel = image.row(static_cast<int64_t>(from_y)) + 3 * static_cast<int64_t>(from_x);
      std::copy(pixel, pixel + 3, scratch.row(row) + 3 * column);
    }
  }
  std::swap(image, scratch);
}

}  // namespace

std::vector<Change> draw_rand_augment(const spec::ImageSize& size, base::Random& random) {
  const auto far = [](int64_t side) { return 150.0 / 331 * static_cast<double>(side); };
  const Strengths most{0.3, far(size.width), far(size.height), 30, 0.9, 4};
  const Change first = draw_change(most, 9, random);
  return {first, draw_change(most, 9, random)};
}

std::vector<Change> draw_trivial_augment(base::Random& random) {
  const int64_t bin = random.below(kNumBins);
  return {draw_change({0.99, 32, 32, 135, 0.99, 6}, bin, random)};
}

void apply(const Change& change, Image& image, Image& scratch) {
  const double m = change.magnitude;
  const double half_w = static_cast<double>(image.width) / 2, half_h = static_cast<double>(image.height) / 2;
  switch (change.operation) {
    case Operation::identity:
      return;
    case Operation::shear_x:  // about the upper left corner
      return warp(image, {1, m, m * half_h, 0, 1, 0}, scratch);
    case Operation::shear_y:
      return warp(image, {1, 0, 0, m, 1, m * half_w}, scratch);
    case Operation::translate_x:
      return warp(image, {1, 0, -m, 0, 1, 0}, scratch);
    case Operation::translate_y:
      return warp(image, {1, 0, 0, 0, 1, -m}, scratch);
    case Operation::rotate: {
      const double angle = -m * std::numbers::pi / 180;
      return warp(image, {std::cos(angle), std::sin(angle), 0, -std::sin(angle), std::cos(angle), 0}, scratch);
    }
    case Operation::brightness:
      return blend(image, 1 + m, [](size_t, size_t) { return 0.0f; });
    case Operation::color:
      return blend(image, 1 + m, [&](size_t i, size_t) { return gray_of(&image.pixels[i]); });
    case Operation::contrast:
      return change_contrast(image, 1 + m);
    case Operation::sharpness:
      return change_sharpness(image, 1 + m, scratch);
    case Operation::posterize: {
      const auto mask = static_cast<uint8_t>(0xFF << (8 - static_cast<int>(m)));
      for (auto& value : image.pixels) value &= mask;
      return;
    }
    case Operation::solarize:
      for (auto& value : image.pixels) value = value >= m ? static_cast<uint8_t>(255 - value) : value;
      return;
    case Operation::autocontrast:
      return stretch_contrast(image);
    case Operation::equalize:
      return equalize_channels(image);
  }
}

}  // namespace lockstep::image
