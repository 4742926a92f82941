// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/render.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/image/resample.h"

namespace lockstep::image {
namespace {

constexpr int64_t kSide = 32;

std::string gradient_file(int64_t width, int64_t height) {
  Image image(width, height);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      image.row(y)[3 * x] = static_cast<uint8_t>((510 * x + 255) / (2 * width));
      image.row(y)[3 * x + 1] = static_cast<uint8_t>((510 * y + 255) / (2 * height));
      image.row(y)[3 * x + 2] = 90;
    }
  }
  return encode_jpeg(image, 95);
}

spec::Data small_data() {
  spec::Data data;
  data.image_size = kSide;
  data.mean = {0, 0, 0};
  data.std = {1, 1, 1};
  return data;
}

std::vector<float> rendered(const std::string& file, const spec::Data& data, const base::Random* numbers) {
  std::vector<float> out(kSide * kSide * 3);
  Renderer renderer(data);
  const auto bytes = std::as_bytes(std::span(file.data(), file.size()));
  numbers ? renderer.random(bytes, *numbers, out.data()) : renderer.center(bytes, out.data());
  return out;
}

TEST(RendererTest, ShowsTheCentreOfAnySize) {
  for (const int64_t side : {30, 40, 90, 700}) {
    const auto out = rendered(gradient_file(side, side), small_data(), nullptr);
    const float left = out[(kSide / 2 * kSide) * 3], right = out[(kSide / 2 * kSide + kSide - 1) * 3];
    EXPECT_NEAR(left, 0.0625 + 0.014, 0.03) << side;  // the crop begins at 1/16 of the side
    EXPECT_NEAR(right, 0.9375 - 0.014, 0.03) << side;
    EXPECT_NEAR(out[(kSide / 2 * kSide + kSide / 2) * 3 + 1], 0.5, 0.03) << side;
  }
}

TEST(RendererTest, AChosenViewLiesInTheCornerAndTheRestIsBlank) {
  const std::string file = gradient_file(64, 32);
  const auto bytes = std::as_bytes(std::span(file.data(), file.size()));
  const auto whole = [](const ImageInfo& info) {  // at half its size: 32 x 16
    const auto axis = [](int64_t size) { return Axis{.num_outputs = size / 2, .scale = 2, .high = size}; };
    return View{axis(info.width), axis(info.height)};
  };
  spec::Data data = small_data();
  data.image_size = {40, 36};
  data.mean = {0.5, 0.5, 0.5};
  Renderer renderer(data);
  std::vector<float> out(40 * 36 * 3, 7);
  EXPECT_EQ(renderer.chosen(bytes, whole, 1, out.data()).width, 64);
  const auto red = [&](int64_t y, int64_t x) { return out[static_cast<size_t>((y * data.image_size.width + x) * 3)]; };
  EXPECT_NEAR(red(0, 0) + 0.5, 0.016, 0.03);
  EXPECT_NEAR(red(15, 31) + 0.5, 0.984, 0.03);
  EXPECT_NEAR(red(7, 16) + 0.5, 0.516, 0.03);
  EXPECT_EQ(red(0, 32), 0);
  EXPECT_EQ(red(16, 0), 0);
  EXPECT_EQ(red(data.image_size.height - 1, data.image_size.width - 1), 0);
  std::vector<uint8_t> pixels(40 * 36 * 3, 7);
  renderer.chosen(bytes, whole, 1, pixels.data());
  EXPECT_EQ(pixels[static_cast<size_t>(data.image_size.width - 1) * 3], 128) << "the mean";
}

TEST(RendererTest, ShowsTheSameCropAtEveryDecodeScale) {
  const base::Random numbers(6);
  spec::Data data = small_data();
  data.crop_scale_min = 0.9;
  const auto small = rendered(gradient_file(40, 40), data, &numbers);
  for (const int64_t side : {80, 160, 320, 640}) {  // decoded at 1/2, 1/4, 1/8, 1/8
    const auto out = rendered(gradient_file(side, side), data, &numbers);
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i) sum += std::abs(static_cast<double>(out[i] - small[i]));
    EXPECT_LT(sum / static_cast<double>(out.size()), 0.02) << side;
  }
}

TEST(RendererTest, DecodingOnlyTheCropChangesNothing) {
  const std::string file = gradient_file(80, 60);
  const auto bytes = std::as_bytes(std::span(file.data(), file.size()));
  const spec::Data data = small_data();
  const Image whole = decode_image(bytes);
  for (uint64_t i = 0; i < 50; ++i) {
    const base::Random numbers(4, 0, i);
    const View view = random_view(80, 60, data, numbers);
    if (part_for(view, read_image_info(bytes), 8).denominator != 1) continue;
    std::vector<float> expected(kSide * kSide * 3);
    Resampler().run(whole, view.x, view.y, {}, expected.data());
    const auto given = rendered(file, data, &numbers);
    for (size_t j = 0; j < given.size(); ++j) ASSERT_NEAR(given[j], expected[j], 1e-6);
  }
}

TEST(RendererTest, ErasesToTheMeanColour) {
  spec::Data data = small_data();
  data.augment = spec::Augment::strong;
  const std::string file = gradient_file(60, 60);
  for (uint64_t i = 0; i < 100; ++i) {
    const base::Random numbers(4, 0, i);
    const View view = random_view(60, 60, data, numbers);
    if (view.erased.width == 0) continue;
    const auto out = rendered(file, data, &numbers);
    EXPECT_EQ(out[static_cast<size_t>((view.erased.y * kSide + view.erased.x) * 3)], 0);
    return;
  }
  FAIL() << "no view of a hundred erased anything";
}

TEST(RendererTest, NoiseIsNormalisedAndRepeatable) {
  spec::Data data = small_data();
  std::vector<float> a(kSide * kSide * 3), b(a.size());
  Renderer(data).noise(base::Random(1), a.data());
  Renderer(data).noise(base::Random(1), b.data());
  EXPECT_EQ(a, b);
  for (const float value : a) ASSERT_TRUE(value >= 0 && value <= 1);
}

}  // namespace
}  // namespace lockstep::image
