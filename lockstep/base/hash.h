// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::base {

// SHA-256 (FIPS 180-4) of a stream of bytes; with the CPU's SHA instructions where it has them. The same digest
// whatever the pieces in which the bytes arrive.
class Sha256 {
 public:
  using Digest = std::array<uint8_t, 32>;

  Sha256();
  void update(std::span<const std::byte> bytes);
  void update(std::string_view bytes) { update(std::as_bytes(std::span(bytes.data(), bytes.size()))); }
  // The digest of all bytes so far; more may follow.
  Digest digest() const;
  std::string hex() const;

 private:
  std::array<uint32_t, 8> state_;
  std::array<uint8_t, 64> pending_{};
  uint64_t num_bytes_ = 0;
};

std::string sha256_hex(std::span<const std::byte> bytes);
std::string sha256_hex(std::string_view bytes);
std::string sha256_of_file(const std::filesystem::path& path);  // errors as read_in_pieces

// CRC-32C (Castagnoli), as in iSCSI, ext4 and TensorBoard's records. `before` is the checksum of the bytes that came
// first: crc32c(b, crc32c(a)) == crc32c(a + b).
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);
uint32_t crc32c(std::string_view bytes, uint32_t before = 0);

// The same two without the CPU's own instructions: what other machines run, and what the tests compare with.
namespace portable {
void sha256_blocks(std::array<uint32_t, 8>& state, const uint8_t* data, size_t num_blocks);
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before);
}  // namespace portable

}  // namespace lockstep::base
