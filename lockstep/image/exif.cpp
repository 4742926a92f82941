// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/exif.h"

#include <cstdint>
#include <cstring>

namespace lockstep::image {
namespace {

// Reads numbers of a TIFF block in its own byte order; 0 outside of it.
class TiffBytes {
 public:
  TiffBytes(std::span<const std::byte> bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}
  uint32_t number(size_t at, size_t width) const {
    if (at > bytes_.size() || bytes_.size() - at < width) return 0;
    uint32_t value = 0;
    for (size_t i = 0; i < width; ++i) {
      const size_t position = big_endian_ ? i : width - 1 - i;
      value = value << 8 | std::to_integer<uint32_t>(bytes_[at + position]);
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  bool big_endian_;
};

}  // namespace

int exif_orientation(std::span<const std::byte> app1) {
  constexpr size_t kPrefix = 6;
  if (app1.size() < kPrefix || std::memcmp(app1.data(), "Exif\0\0", kPrefix) != 0) return 1;
  return tiff_orientation(app1.subspan(kPrefix));
}

int tiff_orientation(std::span<const std::byte> tiff) {
  if (tiff.size() < 8) return 1;
  const bool big_endian = std::memcmp(tiff.data(), "MM\0*", 4) == 0;
  if (!big_endian && std::memcmp(tiff.data(), "II*\0", 4) != 0) return 1;
  const TiffBytes bytes(tiff, big_endian);
  const size_t directory = bytes.number(4, 4);
  const uint32_t num_entries = bytes.number(directory, 2);
  for (uint32_t i = 0; i < num_entries; ++i) {
    const size_t entry = directory + 2 + size_t{12} * i;
    constexpr uint32_t kOrientation = 0x0112, kShort = 3;
    if (entry + 12 > tiff.size()) return 1;
    if (bytes.number(entry, 2) != kOrientation || bytes.number(entry + 2, 2) != kShort) continue;
    const uint32_t value = bytes.number(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace lockstep::image
