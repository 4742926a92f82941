// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/near_duplicates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/random.h"
#include "lockstep/image/decode.h"

namespace lockstep::trust {
namespace {

// Soft blobs of light: like photographs, most of it is in low frequencies.
image::Image scene(uint64_t seed) {
  base::Random random(seed);
  struct Blob {
    double x, y, size, light;
  };
  std::vector<Blob> blobs;
  for (int i = 0; i < 12; ++i) {
    blobs.push_back({random.uniform(0, 96), random.uniform(0, 64), random.uniform(4, 20), random.uniform(-90, 90)});
  }
  image::Image image(96, 64);
  for (int64_t y = 0; y < 64; ++y) {
    for (int64_t x = 0; x < 96; ++x) {
      double value = 128;
      for (const auto& blob : blobs) {
        const double dx = static_cast<double>(x) - blob.x, dy = static_cast<double>(y) - blob.y;
        value += blob.light * std::exp(-(dx * dx + dy * dy) / (2 * blob.size * blob.size));
      }
      for (int c = 0; c < 3; ++c) image.row(y)[3 * x + c] = static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
    }
  }
  return image;
}

TEST(NearDuplicatesTest, TheSameSceneIsKnownAgainWhateverItsSizeAndEncoding) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const image::Image whole = scene(seed);
    const std::string file = image::encode_jpeg(image::resize_image(whole, 60, 40), 70);
    const image::Image again = image::decode_image(std::as_bytes(std::span(file.data(), file.size())));
    const std::vector<uint64_t> a{perceptual_hash(whole)}, same{perceptual_hash(again)};
    EXPECT_EQ(near_pairs(a, same).size(), 1U);
  }
}

TEST(NearDuplicatesTest, OtherScenesAreFar) {
  std::vector<uint64_t> some, others;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    some.push_back(perceptual_hash(scene(seed)));
    others.push_back(perceptual_hash(scene(100 + seed)));
  }
  EXPECT_TRUE(near_pairs(some, others).empty());
  others.push_back(some[3]);
  const auto found = near_pairs(some, others);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].a, 3);
  EXPECT_EQ(found[0].b, 10);
  EXPECT_EQ(found[0].bits, 0);
}

}  // namespace
}  // namespace lockstep::trust
