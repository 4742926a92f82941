// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/base64.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::base {
namespace {

// The examples of RFC 4648.
TEST(Base64Test, IsAsTheRfcSays) {
  for (const auto& [plain, packed] :
       {std::pair("", ""), std::pair("f", "Zg=="), std::pair("fo", "Zm8="), std::pair("foo", "Zm9v"),
        std::pair("foob", "Zm9vYg=="), std::pair("fooba", "Zm9vYmE="), std::pair("foobar", "Zm9vYmFy")}) {
    EXPECT_EQ(to_base64(plain), packed);
    EXPECT_EQ(from_base64(packed, "test"), plain);
  }
}

TEST(Base64Test, AllBytesComeBack) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  EXPECT_EQ(from_base64(to_base64(bytes), "test"), bytes);
}

TEST(Base64Test, RefusesWhatItIsNot) {
  for (const char* words : {"Zg", "Zg=a", "Z===", "Zg==Zg==", "Z g=", "Zm9\n"})
    EXPECT_THROW(from_base64(words, "test"), Error) << words;
}

}  // namespace
}  // namespace lockstep::base
