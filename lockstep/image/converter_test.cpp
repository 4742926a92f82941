// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/converter.h"

#include <gtest/gtest.h>

namespace lockstep::image {
namespace {

TEST(ConverterTest, KnowsTheNamesThatPhonesAndCamerasGive) {
  for (const char* name : {"heic", "heif", "avif"}) EXPECT_EQ(converter_for(name), kHeifConverter) << name;
  EXPECT_EQ(converter_for("cr2"), kRawConverter);
  EXPECT_EQ(converter_for("bmp"), kOtherConverter);
}

TEST(ConverterTest, KnowsNothingOfOtherFiles) {
  for (const char* name : {"txt", "jpg", "db", "", "h"}) EXPECT_EQ(converter_for(name), "") << name;
}

}  // namespace
}  // namespace lockstep::image
