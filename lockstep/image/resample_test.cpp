// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/resample.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/base/random.h"

namespace lockstep::image {
namespace {

Image noise_image(int64_t width, int64_t height) {
  Image image(width, height);
  base::Random random(3);
  for (auto& value : image.pixels) value = static_cast<uint8_t>(random.bits());
  return image;
}

Axis whole_axis(int64_t from, int64_t to) {
  return {.num_outputs = to, .scale = static_cast<double>(from) / static_cast<double>(to), .high = from};
}

// The definition, pixel by pixel in double precision.
double by_definition(const Image& image, const Axis& x, const Axis& y, int64_t column, int64_t row, int64_t channel) {
  const auto weight = [](const Axis& axis, int64_t output, int64_t pixel) {
    const double width = std::max(axis.scale, 1.0);
    const int64_t position = axis.reversed ? axis.num_outputs - 1 - output : output;
    const double center = axis.begin + (static_cast<double>(position) + 0.5) * axis.scale;
    return std::max(0.0, 1 - std::abs(static_cast<double>(pixel) + 0.5 - center) / width);
  };
  double sum = 0, total = 0;
  for (int64_t j = y.low; j < y.high; ++j) {
    for (int64_t i = x.low; i < x.high; ++i) {
      const double w = weight(x, column, i) * weight(y, row, j);
      sum += w * image.row(j)[i * 3 + channel];
      total += w;
    }
  }
  return sum / total / 255;
}

TEST(ResamplerTest, MatchesTheDefinitionForCropsAndScales) {
  const Image image = noise_image(41, 33);
  const std::pair<Axis, Axis> cases[] = {
      {whole_axis(41, 8), whole_axis(33, 8)},
      {whole_axis(41, 60), whole_axis(33, 50)},
      {{.num_outputs = 9, .begin = 5, .scale = 20.0 / 9, .low = 5, .high = 25, .reversed = true},
       {.num_outputs = 7, .begin = 11, .scale = 2.0 / 7, .low = 11, .high = 13}},
      {{.num_outputs = 5, .begin = 3.4, .scale = 1.7, .low = 0, .high = 41},
       {.num_outputs = 6, .begin = 0.3, .scale = 1, .low = 0, .high = 33}},
  };
  Resampler resampler;
  for (const auto& [x, y] : cases) {
    std::vector<float> out(static_cast<size_t>(x.num_outputs * y.num_outputs * 3));
    resampler.run(image, x, y, {}, out.data());
    for (int64_t row = 0; row < y.num_outputs; ++row) {
      for (int64_t column = 0; column < x.num_outputs; ++column) {
        for (int64_t c = 0; c < 3; ++c) {
          ASSERT_NEAR(out[static_cast<size_t>((row * x.num_outputs + column) * 3 + c)],
                      by_definition(image, x, y, column, row, c), 1e-5);
        }
      }
    }
  }
}

TEST(ResamplerTest, EveryVectorUnitGivesTheSame) {
  const Image image = noise_image(203, 151);
  const Normalisation normalisation{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
  base::Random random(7);
  for (int i = 0; i < 40; ++i) {
    const int64_t w = 1 + random.below(203), h = 1 + random.below(151), size = 1 + random.below(64);
    const auto axis = [&](int64_t begin, int64_t length) {
      return Axis{.num_outputs = size,
                  .begin = static_cast<double>(begin),
                  .scale = static_cast<double>(length) / static_cast<double>(size),
                  .low = begin,
                  .high = begin + length,
                  .reversed = i % 2 == 1};
    };
    const Axis x = axis(203 - w, w), y = axis(151 - h, h);
    std::vector<std::vector<float>> results;
    for (const VectorUnit unit : vector_units()) {
      results.emplace_back(static_cast<size_t>(size * size * 3));
      Resampler(unit).run(image, x, y, normalisation, results.back().data());
    }
    for (size_t j = 0; j < results[0].size(); ++j) ASSERT_NEAR(results[0][j], results.back()[j], 2e-6);
    if (results.size() == 3) {
      ASSERT_EQ(results[1], results[2]);
    }
  }
}

float widened(uint16_t half) {
  return std::bit_cast<float>(uint32_t{half} << 16);
}

TEST(ResamplerTest, BytesAndHalvesAreTheFloatsRounded) {
  const Image image = noise_image(203, 151);
  const Normalisation normalisation{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
  for (const int64_t size : {1, 7, 64, 200}) {
    const Axis x = whole_axis(203, size), y = whole_axis(151, size);
    const auto length = static_cast<size_t>(size * size * 3);
    std::vector<std::vector<uint8_t>> all_bytes;
    for (const VectorUnit unit : vector_units()) {
      std::vector<float> plain(length), normalised(length);
      std::vector<uint8_t>& bytes = all_bytes.emplace_back(length);
      std::vector<uint16_t> halves(length), packed(length);
      Resampler resampler(unit);
      resampler.run(image, x, y, {}, plain.data());
      resampler.run(image, x, y, normalisation, normalised.data());
      resampler.run(image, x, y, normalisation, bytes.data());
      resampler.run(image, x, y, normalisation, halves.data());
      pack_halves(normalised.data(), static_cast<int64_t>(length), packed.data());
      EXPECT_EQ(halves, packed);
      for (size_t i = 0; i < length; ++i) {
        ASSERT_LE(std::abs(255 * plain[i] - static_cast<float>(bytes[i])), 0.501f);
        ASSERT_LE(std::abs(widened(halves[i]) - normalised[i]), std::abs(normalised[i]) / 256 + 1e-30f);
      }
    }
    for (size_t i = 0; i < length; ++i) ASSERT_LE(std::abs(all_bytes[0][i] - all_bytes.back()[i]), 1);
    if (all_bytes.size() == 3) {
      ASSERT_EQ(all_bytes[1], all_bytes[2]);
    }
  }
}

TEST(ResamplerTest, PackingRoundsToTheNearestAndToEven) {
  const float values[] = {0, 1, 0.5f / 255, 254.4f / 255, -1, 2};
  uint8_t bytes[6];
  pack_bytes(values, 6, bytes);
  EXPECT_EQ((std::vector<int>(bytes, bytes + 6)), (std::vector<int>{0, 255, 1, 254, 0, 255}));
  const float ties[] = {std::bit_cast<float>(0x3F808000u), std::bit_cast<float>(0x3F818000u)};
  uint16_t halves[2];
  pack_halves(ties, 2, halves);
  EXPECT_EQ(halves[0], 0x3F80);
  EXPECT_EQ(halves[1], 0x3F82);
}

TEST(ResamplerTest, SameSizeLeavesEveryPixel) {
  const Image image = noise_image(13, 9);
  std::vector<float> out(image.pixels.size());
  Resampler().run(image, whole_axis(13, 13), whole_axis(9, 9), {}, out.data());
  for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i] * 255, image.pixels[i], 1e-3);
}

TEST(ResamplerTest, NormalisesEachChannel) {
  Image image(4, 4);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(51 * (i % 3 + 1));
  std::vector<float> out(2 * 2 * 3);
  Resampler().run(image, whole_axis(4, 2), whole_axis(4, 2), {{0.1f, 0.2f, 0.3f}, {0.5f, 0.25f, 2}}, out.data());
  EXPECT_NEAR(out[0], (0.2 - 0.1) / 0.5, 1e-6);
  EXPECT_NEAR(out[1], (0.4 - 0.2) / 0.25, 1e-6);
  EXPECT_NEAR(out[2], (0.6 - 0.3) / 2, 1e-6);
}

TEST(ResamplerTest, WeightsSumToOneAndStayInside) {
  for (const double scale : {0.1, 0.99, 1.0, 1.01, 2.5, 7.9}) {
    for (int64_t length = 1; length < 12; ++length) {
      Resampler::Taps taps;
      Resampler::fill({.num_outputs = 10, .begin = 0.5, .scale = scale, .low = 2, .high = 2 + length}, taps);
      for (size_t i = 0; i < 10; ++i) {
        ASSERT_GE(taps.first[i], 2);
        ASSERT_LE(taps.first[i] + taps.count, 2 + length);
        const auto* weights = taps.weights.data() + static_cast<int64_t>(i) * taps.count;
        ASSERT_NEAR(std::accumulate(weights, weights + taps.count, 0.0), 1, 1e-5);
      }
    }
  }
}

TEST(ResamplerTest, RefusesColumnsOutsideTheImage) {
  const Image image = noise_image(4, 4);
  float out[12];
  EXPECT_THROW(Resampler().run(image, whole_axis(5, 2), whole_axis(4, 2), {}, out), base::Error);
}

}  // namespace
}  // namespace lockstep::image
