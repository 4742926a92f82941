// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/radar/bzip2_door.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::sources {
namespace {

std::span<const std::byte> packed_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Bzip2DoorTest, GivesBackWhatWasPacked) {
  std::string plain;
  for (int i = 0; i < 700000; ++i) plain += static_cast<char>(i * i >> 7);
  const std::string packed = bzip2(plain);
  EXPECT_EQ(bunzip2(packed_bytes(packed), plain.size(), "x"), plain);
  EXPECT_EQ(bunzip2(packed_bytes(bzip2("")), 10, "x"), "");
}

TEST(Bzip2DoorTest, RefusesWhatIsDamagedCutOffOrTooMuch) {
  const std::string plain(100000, 'a'), packed = bzip2(plain);
  EXPECT_THROW(bunzip2(packed_bytes(packed), plain.size() - 1, "x"), base::Error);
  EXPECT_THROW(bunzip2(packed_bytes(packed.substr(0, packed.size() - 3)), plain.size(), "x"), base::Error);
  EXPECT_THROW(bunzip2(packed_bytes("BZh9 and no more"), 100, "x"), base::Error);
}

}  // namespace
}  // namespace lockstep::sources
