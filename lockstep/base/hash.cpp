// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/hash.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstring>

#include "lockstep/base/file.h"

namespace lockstep::base {
namespace {

constexpr std::array<uint32_t, 8> kSha256Start = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

alignas(16) constexpr uint32_t kSha256Round[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t big_endian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

// Eight tables: table[k][b] carries byte b over k further zero bytes, so that eight bytes cost one round of lookups.
using Crc32cTables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Crc32cTables make_crc32c_tables() {
  Crc32cTables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0x82f63b78u & (0u - (crc & 1u)));
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Crc32cTables kCrc32c = make_crc32c_tables();

#if defined(__x86_64__)
bool cpu_has_sha() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kShaBit = 1u << 29;  // leaf 7, ebx; __builtin_cpu_supports does not know it in g++ 12
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & kShaBit) && __builtin_cpu_supports("sse4.1");
}

__m128i load128(const void* at) {
  return _mm_loadu_si128(static_cast<const __m128i*>(at));
}

// The instructions want the eight words as (a, b, e, f) and (c, d, g, h).
__attribute__((target("sha,sse4.1"))) void sha256_blocks_native(std::array<uint32_t, 8>& state, const uint8_t* data,
                                                                size_t num_blocks) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const __m128i cdab = _mm_shuffle_epi32(load128(&state[0]), 0xB1);
  const __m128i hgfe = _mm_shuffle_epi32(load128(&state[4]), 0x1B);
  __m128i abef = _mm_alignr_epi8(cdab, hgfe, 8);
  __m128i cdgh = _mm_blend_epi16(hgfe, cdab, 0xF0);
  for (; num_blocks > 0; --num_blocks, data += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[16];
#pragma GCC unroll 16
    for (int64_t i = 0; i < 16; ++i) {
      if (i < 4) {
        w[i] = _mm_shuffle_epi8(load128(data + 16 * i), swap);
      } else {
        const __m128i sum =
            _mm_add_epi32(_mm_sha256msg1_epu32(w[i - 4], w[i - 3]), _mm_alignr_epi8(w[i - 1], w[i - 2], 4));
        w[i] = _mm_sha256msg2_epu32(sum, w[i - 1]);
      }
      const __m128i k = _mm_add_epi32(w[i], load128(&kSha256Round[4 * i]));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, k);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(k, 0x0E));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1B);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&state[0]), _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&state[4]), _mm_alignr_epi8(dchg, feba, 8));
}

__attribute__((target("sse4.2"))) uint32_t crc32c_native(std::span<const std::byte> bytes, uint32_t before) {
  uint64_t crc = ~before;
  const auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  for (; left > 0; --left, ++at) crc = _mm_crc32_u8(static_cast<uint32_t>(crc), *at);
  return ~static_cast<uint32_t>(crc);
}
#endif

void sha256_blocks(std::array<uint32_t, 8>& state, const uint8_t* data, size_t num_blocks) {
#if defined(__x86_64__)
  static const bool native = cpu_has_sha();
  if (native) return sha256_blocks_native(state, data, num_blocks);
#endif
  portable::sha256_blocks(state, data, num_blocks);
}

}  // namespace

namespace portable {

void sha256_blocks(std::array<uint32_t, 8>& state, const uint8_t* data, size_t num_blocks) {
  for (; num_blocks > 0; --num_blocks, data += 64) {
    uint32_t w[64];
    for (int64_t i = 0; i < 16; ++i) w[i] = big_endian(data + 4 * i);
    for (int i = 16; i < 64; ++i) {
      const uint32_t x = w[i - 15], y = w[i - 2];
      const uint32_t s0 = std::rotr(x, 7) ^ std::rotr(x, 18) ^ (x >> 3);
      const uint32_t s1 = std::rotr(y, 17) ^ std::rotr(y, 19) ^ (y >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (int i = 0; i < 64; ++i) {
      const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kSha256Round[i] + w[i];
      const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::array<uint32_t, 8> added = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < 8; ++i) state[i] += added[i];
  }
}

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
  uint32_t crc = ~before;
  const auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    const uint32_t low = crc ^ (at[0] | uint32_t{at[1]} << 8 | uint32_t{at[2]} << 16 | uint32_t{at[3]} << 24);
    crc = kCrc32c[7][low & 0xff] ^ kCrc32c[6][low >> 8 & 0xff] ^ kCrc32c[5][low >> 16 & 0xff] ^ kCrc32c[4][low >> 24] ^
          kCrc32c[3][at[4]] ^ kCrc32c[2][at[5]] ^ kCrc32c[1][at[6]] ^ kCrc32c[0][at[7]];
  }
  for (; left > 0; --left, ++at) crc = (crc >> 8) ^ kCrc32c[0][(crc ^ *at) & 0xff];
  return ~crc;
}

}  // namespace portable

Sha256::Sha256() : state_(kSha256Start) {}

void Sha256::update(std::span<const std::byte> bytes) {
  const auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t left = bytes.size();
  if (left == 0) return;
  const size_t filled = num_bytes_ % 64;
  num_bytes_ += left;
  if (filled > 0) {
    const size_t taken = std::min(left, 64 - filled);
    std::memcpy(pending_.data() + filled, at, taken);
    at += taken, left -= taken;
    if (filled + taken < 64) return;
    sha256_blocks(state_, pending_.data(), 1);
  }
  sha256_blocks(state_, at, left / 64);
  if (left % 64 > 0) std::memcpy(pending_.data(), at + left / 64 * 64, left % 64);
}

Sha256::Digest Sha256::digest() const {
  Sha256 last = *this;
  const size_t filled = num_bytes_ % 64;
  std::array<uint8_t, 72> padding{0x80};
  const size_t num_padding = (filled < 56 ? 56 : 120) - filled;
  const uint64_t num_bits = num_bytes_ * 8;
  for (size_t i = 0; i < 8; ++i) padding[num_padding + i] = static_cast<uint8_t>(num_bits >> (56 - 8 * i));
  last.update(std::as_bytes(std::span(padding.data(), num_padding + 8)));
  Digest digest{};
  for (size_t i = 0; i < 32; ++i) digest[i] = static_cast<uint8_t>(last.state_[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

std::string Sha256::hex() const {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string all;
  for (const uint8_t byte : digest()) {
    all += kDigits[byte >> 4];
    all += kDigits[byte & 15];
  }
  return all;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string sha256_of_file(const std::filesystem::path& path) {
  Sha256 hash;
  read_in_pieces(path, [&](std::span<const std::byte> piece) { hash.update(piece); });
  return hash.hex();
}

std::string sha256_hex(std::string_view bytes) {
  return sha256_hex(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
#if defined(__x86_64__)
  static const bool native = __builtin_cpu_supports("sse4.2");
  if (native) return crc32c_native(bytes, before);
#endif
  return portable::crc32c(bytes, before);
}

uint32_t crc32c(std::string_view bytes, uint32_t before) {
  return crc32c(std::as_bytes(std::span(bytes.data(), bytes.size())), before);
}

}  // namespace lockstep::base
