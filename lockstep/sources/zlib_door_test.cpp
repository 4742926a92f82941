// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/zlib_door.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::sources {
namespace {

// "lockstep\n", made by gzip -n.
constexpr unsigned char kPacked[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03,
                                     0xcb, 0xc9, 0x4f, 0xce, 0x2e, 0x2e, 0x49, 0x2d, 0xe0, 0x02,
                                     0x00, 0x1f, 0x49, 0x21, 0x56, 0x09, 0x00, 0x00, 0x00};

std::string packed() {
  return {reinterpret_cast<const char*>(kPacked), sizeof kPacked};
}

std::string unpacked(const std::string& file, size_t max_bytes = 1 << 20) {
  return gunzip(std::as_bytes(std::span(file.data(), file.size())), max_bytes, "a.gz");
}

TEST(GunzipTest, UnpacksMembersBehindEachOther) {
  EXPECT_EQ(unpacked(packed()), "lockstep\n");
  EXPECT_EQ(unpacked(packed() + packed()), "lockstep\nlockstep\n");
}

TEST(GunzipTest, NamesADamagedACutOffAndATooLargeFile) {
  std::string flipped = packed();
  flipped[20] = static_cast<char>(flipped[20] ^ 1);
  EXPECT_THROW(unpacked(flipped), base::Error);
  for (size_t size = 0; size < packed().size(); ++size) EXPECT_THROW(unpacked(packed().substr(0, size)), base::Error);
  EXPECT_THROW(unpacked("no gzip file"), base::Error);
  try {
    unpacked(packed() + packed(), 10);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_NE(std::string(error.what()).find("a.gz: it unpacks to more than 10 bytes"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep::sources
