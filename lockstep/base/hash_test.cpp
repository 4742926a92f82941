// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/hash.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::base {
namespace {

std::vector<std::byte> counting_bytes(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 131 + i / 256);
  return bytes;
}

TEST(Sha256Test, MatchesThePublishedVectors) {  // FIPS 180-4 examples
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, DoesNotDependOnThePieces) {
  const auto bytes = counting_bytes(1000);
  const std::string whole = sha256_hex(bytes);
  for (const size_t piece : {1u, 3u, 55u, 56u, 63u, 64u, 65u, 129u}) {
    Sha256 hash;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      hash.update(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
      (void)hash.digest();  // a look in between changes nothing
    }
    EXPECT_EQ(hash.hex(), whole) << "pieces of " << piece;
  }
}

TEST(Sha256Test, PortableBlocksMatchTheVector) {
  std::array<uint32_t, 8> state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> block{'a', 'b', 'c', 0x80};
  block[63] = 24;
  portable::sha256_blocks(state, block.data(), 1);
  EXPECT_EQ(state[0], 0xba7816bfu);
  EXPECT_EQ(state[7], 0xf20015adu);
}

TEST(Crc32cTest, MatchesThePublishedVectors) {  // RFC 3720 B.4 and the usual check value
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(Crc32cTest, PortableAndNativeAgreeAndGoOn) {
  const auto bytes = counting_bytes(300);
  for (size_t length = 0; length <= bytes.size(); length += 7) {
    const auto first = std::span(bytes).first(length);
    EXPECT_EQ(portable::crc32c(first, 0), crc32c(first)) << length;
    EXPECT_EQ(crc32c(std::span(bytes).subspan(length), crc32c(first)), crc32c(bytes)) << length;
  }
}

}  // namespace
}  // namespace lockstep::base
