// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/json.h"

namespace lockstep::spec {

// Pixels that a network sees; in a document n, or [height, width].
struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;

  ImageSize() = default;
  ImageSize(int64_t side) : height(side), width(side) {}  // NOLINT(google-explicit-constructor): a square is its side
  ImageSize(int64_t rows, int64_t columns) : height(rows), width(columns) {}

  int64_t pixels() const { return height * width; }
  bool is_square() const { return height == width; }
  bool operator==(const ImageSize&) const = default;
};

base::Json to_json(const ImageSize& size);
ImageSize image_size_of(const base::Json& value);                 // REQUIRES: an integer, or a list of two
std::string to_text(const ImageSize& size);                       // "224", "384x1248"
std::optional<ImageSize> image_size_from(std::string_view text);  // likewise; none: it is no such text

}  // namespace lockstep::spec
