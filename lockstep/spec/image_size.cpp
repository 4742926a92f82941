// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/image_size.h"

#include <charconv>

#include "lockstep/base/text.h"

namespace lockstep::spec {

base::Json to_json(const ImageSize& size) {
  if (size.is_square()) return size.height;
  return base::Json::array({size.height, size.width});
}

ImageSize image_size_of(const base::Json& value) {
  if (value.is_integer()) return value.as_int();
  return {value.items()[0].as_int(), value.items()[1].as_int()};
}

std::string to_text(const ImageSize& size) {
  return size.is_square() ? base::text(size.height) : base::text(size.height, "x", size.width);
}

std::optional<ImageSize> image_size_from(std::string_view text) {
  const auto side = [](std::string_view digits) -> int64_t {
    int64_t value = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return code == std::errc() && end == digits.data() + digits.size() ? value : 0;
  };
  const size_t cross = text.find('x');
  const int64_t height = side(text.substr(0, cross));
  const int64_t width = cross == std::string_view::npos ? height : side(text.substr(cross + 1));
  if (height <= 0 || width <= 0) return std::nullopt;
  return ImageSize(height, width);
}

}  // namespace lockstep::spec
