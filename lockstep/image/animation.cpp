// SPDX-License-Identifier: Apache-2.0
// Every picture is encoded as a PNG of its own; its data become the chunks of an animation (APNG, now in the third
// edition of the PNG specification).
#include "lockstep/image/animation.h"

#include <array>
#include <cstdint>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/image/decode.h"

namespace lockstep::image {
namespace {

uint32_t png_crc(std::string_view bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> all{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value & 1U) != 0 ? 0xedb88320U ^ value >> 1 : value >> 1;
      all[i] = value;
    }
    return all;
  }();
  uint32_t crc = ~0U;
  for (const char c : bytes) crc = table[(crc ^ static_cast<uint8_t>(c)) & 255U] ^ crc >> 8;
  return ~crc;
}

std::string word_of(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255U);
  return bytes;
}

std::string half_word_of(uint32_t value) {
  return word_of(value).substr(2);
}

std::string chunk(const std::string& kind, const std::string& body) {
  return word_of(static_cast<uint32_t>(body.size())) + kind + body + word_of(png_crc(kind + body));
}

constexpr size_t kPngSignature = 8, kPngHeader = 25;  // IHDR with its length, kind and sum

// The bodies of its IDAT chunks, put together.
std::string data_of(const std::string& png) {
  std::string data;
  for (size_t at = kPngSignature; at + 12 <= png.size();) {
    uint32_t size = 0;
    for (size_t i = 0; i < 4; ++i) size = size << 8 | static_cast<uint8_t>(png[at + i]);
    if (png.compare(at + 4, 4, "IDAT") == 0) data += png.substr(at + 8, size);
    at += 12 + size;
  }
  return data;
}

}  // namespace

std::string encode_animation(std::span<const Image> pictures, int milliseconds) {
  base::ensure(!pictures.empty(), "an animation has pictures");
  std::string file;
  uint32_t number = 0;
  for (size_t i = 0; i < pictures.size(); ++i) {
    Image picture = pictures[i];
    base::ensure(picture.width == pictures[0].width && picture.height == pictures[0].height, "pictures of one size");
    // A grey picture would become a grey PNG, of another kind than its neighbours.
    picture.pixels[0] = static_cast<uint8_t>(picture.pixels[0] ^ (picture.pixels[0] == picture.pixels[1] ? 1 : 0));
    const std::string png = encode_png(picture);
    if (i == 0) {
      file = png.substr(0, kPngSignature + kPngHeader);
      file += chunk("acTL", word_of(static_cast<uint32_t>(pictures.size())) + word_of(0));
    }
    file += chunk("fcTL", word_of(number++) + word_of(static_cast<uint32_t>(picture.width)) +
                              word_of(static_cast<uint32_t>(picture.height)) + word_of(0) + word_of(0) +
                              half_word_of(static_cast<uint32_t>(milliseconds)) + half_word_of(1000) +
                              std::string(2, '\0'));
    const std::string data = data_of(png);
    file += i == 0 ? chunk("IDAT", data) : chunk("fdAT", word_of(number++) + data);
  }
  return file + chunk("IEND", "");
}

}  // namespace lockstep::image
