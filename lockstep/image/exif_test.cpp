// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/exif.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::image {
namespace {

int orientation_of(const std::string& app1) {
  return exif_orientation(std::as_bytes(std::span(app1.data(), app1.size())));
}

std::string block(bool big_endian, char orientation) {
  using std::string_literals::operator""s;
  if (big_endian) return "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0"s + orientation + "\0\0\0\0\0\0"s;
  return "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0"s + orientation + "\0\0\0\0\0\0\0"s;
}

TEST(ExifTest, ReadsBothByteOrders) {
  for (char value = 1; value <= 8; ++value) {
    EXPECT_EQ(orientation_of(block(true, value)), value);
    EXPECT_EQ(orientation_of(block(false, value)), value);
  }
}

TEST(ExifTest, TakesNonsenseAsUpright) {
  EXPECT_EQ(orientation_of(""), 1);
  EXPECT_EQ(orientation_of("Exif"), 1);
  EXPECT_EQ(orientation_of(block(true, 9)), 1);
  EXPECT_EQ(orientation_of(block(false, 0)), 1);
  EXPECT_EQ(orientation_of("http://ns.adobe.com/xap/1.0/"), 1);
}

TEST(ExifTest, StaysInsideACutBlock) {
  const std::string whole = block(false, 6);
  for (size_t length = 0; length < whole.size(); ++length) {
    const int value = orientation_of(whole.substr(0, length));
    EXPECT_TRUE(value == 1 || value == 6) << length;
  }
}

}  // namespace
}  // namespace lockstep::image
