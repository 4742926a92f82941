// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/policy.h"

#include <gtest/gtest.h>

#include <map>

namespace lockstep::image {
namespace {

Image policy_image() {
  Image image(8, 6);
  base::Random random(2);
  for (auto& value : image.pixels) value = static_cast<uint8_t>(random.bits() % 200 + 20);
  return image;
}

Image changed(Operation operation, double magnitude) {
  Image image = policy_image(), scratch;
  apply({operation, magnitude}, image, scratch);
  return image;
}

TEST(PolicyTest, NoMagnitudeLeavesTheImage) {
  for (const auto operation :
       {Operation::identity, Operation::shear_x, Operation::shear_y, Operation::translate_x, Operation::translate_y,
        Operation::rotate, Operation::brightness, Operation::color, Operation::contrast, Operation::sharpness}) {
    EXPECT_EQ(changed(operation, 0), policy_image()) << static_cast<int>(operation);
  }
  EXPECT_EQ(changed(Operation::posterize, 8), policy_image());
  EXPECT_EQ(changed(Operation::solarize, 255), policy_image());
}

TEST(PolicyTest, MovesPixelsWhereTheyBelong) {
  const Image before = policy_image();
  const Image right = changed(Operation::translate_x, 3), down = changed(Operation::translate_y, 2);
  const Image turned = changed(Operation::rotate, 180);
  for (int64_t y = 0; y < 6; ++y) {
    for (int64_t x = 0; x < 8; ++x) {
      EXPECT_EQ(right.row(y)[3 * x], x < 3 ? 0 : before.row(y)[3 * (x - 3)]);
      EXPECT_EQ(down.row(y)[3 * x], y < 2 ? 0 : before.row(y - 2)[3 * x]);
      EXPECT_EQ(turned.row(y)[3 * x], before.row(5 - y)[3 * (7 - x)]);
    }
  }
}

TEST(PolicyTest, ChangesTones) {
  EXPECT_EQ(changed(Operation::brightness, -1), Image(8, 6));
  const Image gray = changed(Operation::color, -1);
  for (size_t i = 0; i < gray.pixels.size(); i += 3) EXPECT_EQ(gray.pixels[i], gray.pixels[i + 2]);
  for (const uint8_t value : changed(Operation::posterize, 2).pixels) EXPECT_EQ(value % 64, 0);
  const Image stretched = changed(Operation::autocontrast, 0);
  EXPECT_EQ(*std::min_element(stretched.pixels.begin(), stretched.pixels.end()), 0);
  EXPECT_EQ(*std::max_element(stretched.pixels.begin(), stretched.pixels.end()), 255);
}

TEST(PolicyTest, DrawsEveryOperationAboutEquallyOftenOnBothSides) {
  std::map<Operation, int> counts;
  int negative = 0, sided = 0;
  for (uint64_t i = 0; i < 7000; ++i) {
    base::Random random(1, 0, i);
    const auto changes = draw_rand_augment(224, random);
    ASSERT_EQ(changes.size(), 2u);
    for (const Change& change : changes) {
      ++counts[change.operation];
      if (change.operation == Operation::rotate) {
        ++sided;
        negative += change.magnitude < 0;
        EXPECT_DOUBLE_EQ(std::abs(change.magnitude), 9);  // 9 of 30 bins, of 30 degrees
      }
      if (change.operation == Operation::posterize) {
        EXPECT_EQ(change.magnitude, 7);
      }
      if (change.operation == Operation::translate_x) {  // 0.3 * 101.5
        EXPECT_EQ(std::abs(change.magnitude), 30);
      }
    }
  }
  ASSERT_EQ(counts.size(), static_cast<size_t>(kNumOperations));
  for (const auto& [operation, count] : counts) EXPECT_NEAR(count, 1000, 150) << static_cast<int>(operation);
  EXPECT_NEAR(negative, sided / 2, 80);
}

TEST(PolicyTest, TrivialAugmentDrawsOneOfAnyMagnitude) {
  double most = 0;
  for (uint64_t i = 0; i < 3000; ++i) {
    base::Random random(1, 0, i);
    const auto changes = draw_trivial_augment(random);
    ASSERT_EQ(changes.size(), 1u);
    if (changes[0].operation == Operation::rotate) most = std::max(most, std::abs(changes[0].magnitude));
    if (changes[0].operation == Operation::posterize) {
      EXPECT_GE(changes[0].magnitude, 2);
    }
  }
  EXPECT_DOUBLE_EQ(most, 135);
}

}  // namespace
}  // namespace lockstep::image
