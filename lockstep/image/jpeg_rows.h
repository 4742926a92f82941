// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::image {

// What the markers of a JPEG file say about the way its data are laid out; found without decoding.
struct JpegLayout {
  bool progressive = false;
  // Where the entropy-coded data of each row of MCUs begins (behind SOS, then behind each RSTn). Filled only when
  // every row can be decoded on its own: sequential, one scan of all components, a restart after each row of MCUs.
  std::vector<uint32_t> row_offsets;
};

// Empty for anything that is no well-formed JPEG: whoever decodes it will say why.
JpegLayout read_jpeg_layout(std::span<const std::byte> file);

}  // namespace lockstep::image
