// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/contact_sheet.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::image {
namespace {

TEST(ContactSheetTest, PlacesNamesAndPictures) {
  Image red(10, 5), blue(20, 20);
  for (size_t i = 0; i < red.pixels.size(); i += 3) red.pixels[i] = 200;
  for (size_t i = 2; i < blue.pixels.size(); i += 3) blue.pixels[i] = 200;
  const Image sheet = contact_sheet({{"a", {red, blue}}, {"long name", {blue}}}, 20);
  EXPECT_EQ(sheet.height, 6 + 2 * 26);
  EXPECT_EQ(sheet.width, 9 * 12 + 12 + 2 * 26 + 6);
  const auto pixel = [&](int64_t x, int64_t y) { return sheet.row(y)[3 * x] * 1000 + sheet.row(y)[3 * x + 2]; };
  EXPECT_EQ(pixel(120 + 10, 6 + 10), 200000);           // red lies in the middle of its cell,
  EXPECT_EQ(pixel(120 + 10, 6 + 2), 250250);            // with paper above it
  EXPECT_EQ(pixel(146 + 10, 6 + 2), 200);               // blue fills its cell
  EXPECT_EQ(pixel(146 + 10, 32 + 2), 250250);           // the second row has one picture only
  const uint8_t* name = sheet.row(6 + 3 + 12) + 3 * 6;  // the foot of the letter A
  EXPECT_EQ(*std::min_element(name, name + 3 * 12), 40);
}

}  // namespace
}  // namespace lockstep::image
