// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/jpeg_rows.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace lockstep::image {
namespace {

constexpr uint8_t kSof0 = 0xC0, kSof1 = 0xC1, kSof2 = 0xC2, kSos = 0xDA, kEoi = 0xD9, kDri = 0xDD, kRst0 = 0xD0;

struct Frame {
  int64_t width = 0;
  int64_t height = 0;
  int64_t num_components = 0;
  int64_t mcu_width = 8;
  int64_t mcu_height = 8;
};

class LayoutReader {
 public:
  explicit LayoutReader(std::span<const std::byte> file) : file_(file) {}

  JpegLayout read() {
    JpegLayout layout;
    size_t at = 2;
    while (at + 4 <= file_.size() && byte(at) == 0xFF) {
      const uint8_t marker = byte(at + 1);
      if (marker == 0xFF) {  // fill
        ++at;
        continue;
      }
      const size_t length = word(at + 2);
      if (length < 2 || at + 2 + length > file_.size()) return layout;
      if (marker == kSof2) layout.progressive = true;
      if (marker == kSof0 || marker == kSof1) read_frame(at + 4, length - 2);
      if (marker == kDri && length == 4) interval_ = word(at + 4);
      if (marker == kSos) {
        if (length > 2 && rows_are_apart(at + 4)) layout.row_offsets = rows_from(at + 2 + length);
        return layout;
      }
      at += 2 + length;
    }
    return layout;
  }

 private:
  uint8_t byte(size_t at) const { return static_cast<uint8_t>(file_[at]); }
  size_t word(size_t at) const { return static_cast<size_t>(byte(at)) << 8 | byte(at + 1); }

  void read_frame(size_t at, size_t length) {
    if (length < 6 || length < 6 + size_t{byte(at + 5)} * 3) return;
    frame_.height = static_cast<int64_t>(word(at + 1));
    frame_.width = static_cast<int64_t>(word(at + 3));
    frame_.num_components = byte(at + 5);
    for (int64_t c = 0; c < frame_.num_components && frame_.num_components > 1; ++c) {
      const uint8_t sampling = byte(at + 6 + static_cast<size_t>(c) * 3 + 1);
      frame_.mcu_width = std::max<int64_t>(frame_.mcu_width, int64_t{8} * (sampling >> 4));
      frame_.mcu_height = std::max<int64_t>(frame_.mcu_height, int64_t{8} * (sampling & 15));
    }
  }

  int64_t mcus_per_row() const { return (frame_.width + frame_.mcu_width - 1) / frame_.mcu_width; }

  bool rows_are_apart(size_t scan_at) const {
    return frame_.width > 0 && frame_.height > 0 && byte(scan_at) == frame_.num_components &&
           static_cast<int64_t>(interval_) == mcus_per_row() && file_.size() < std::numeric_limits<uint32_t>::max();
  }

  // The beginnings of all rows, or nothing when their number is not that of the image.
  std::vector<uint32_t> rows_from(size_t at) const {
    std::vector<uint32_t> rows{static_cast<uint32_t>(at)};
    const auto* bytes = reinterpret_cast<const uint8_t*>(file_.data());
    while (at + 1 < file_.size()) {
      const void* found = std::memchr(bytes + at, 0xFF, file_.size() - 1 - at);
      if (!found) break;
      at = static_cast<size_t>(static_cast<const uint8_t*>(found) - bytes);
      const uint8_t marker = bytes[at + 1];
      if (marker == 0xFF) {
        ++at;
        continue;
      }
      if (marker >= kRst0 && marker < kRst0 + 8) {
        if (marker != kRst0 + (rows.size() - 1) % 8) return {};
        rows.push_back(static_cast<uint32_t>(at + 2));
      } else if (marker != 0) {
        const auto expected = static_cast<size_t>((frame_.height + frame_.mcu_height - 1) / frame_.mcu_height);
        return marker == kEoi && rows.size() == expected ? rows : std::vector<uint32_t>{};
      }
      at += 2;
    }
    return {};
  }

  std::span<const std::byte> file_;
  Frame frame_;
  size_t interval_ = 0;
};

}  // namespace

JpegLayout read_jpeg_layout(std::span<const std::byte> file) {
  if (file.size() < 4 || file[0] != std::byte{0xFF} || file[1] != std::byte{0xD8}) return {};
  return LayoutReader(file).read();
}

}  // namespace lockstep::image
