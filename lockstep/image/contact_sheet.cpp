// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/contact_sheet.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "lockstep/image/decode.h"

namespace lockstep::image {
namespace {

constexpr int64_t kGap = 6, kZoom = 2, kGlyphWidth = 6 * kZoom, kGlyphHeight = 7 * kZoom;
constexpr uint8_t kPaper = 250, kInk = 40;

// Five columns of seven bits a letter, the lowest bit on top: A to Z, then 0 to 9.
constexpr std::array<std::array<uint8_t, 5>, 36> kGlyphs = {{
    {0x7E, 0x11, 0x11, 0x11, 0x7E}, {0x7F, 0x49, 0x49, 0x49, 0x36}, {0x3E, 0x41, 0x41, 0x41, 0x22},
    {0x7F, 0x41, 0x41, 0x22, 0x1C}, {0x7F, 0x49, 0x49, 0x49, 0x41}, {0x7F, 0x09, 0x09, 0x09, 0x01},
    {0x3E, 0x41, 0x49, 0x49, 0x7A}, {0x7F, 0x08, 0x08, 0x08, 0x7F}, {0x00, 0x41, 0x7F, 0x41, 0x00},
    {0x20, 0x40, 0x41, 0x3F, 0x01}, {0x7F, 0x08, 0x14, 0x22, 0x41}, {0x7F, 0x40, 0x40, 0x40, 0x40},
    {0x7F, 0x02, 0x0C, 0x02, 0x7F}, {0x7F, 0x04, 0x08, 0x10, 0x7F}, {0x3E, 0x41, 0x41, 0x41, 0x3E},
    {0x7F, 0x09, 0x09, 0x09, 0x06}, {0x3E, 0x41, 0x51, 0x21, 0x5E}, {0x7F, 0x09, 0x19, 0x29, 0x46},
    {0x26, 0x49, 0x49, 0x49, 0x32}, {0x01, 0x01, 0x7F, 0x01, 0x01}, {0x3F, 0x40, 0x40, 0x40, 0x3F},
    {0x1F, 0x20, 0x40, 0x20, 0x1F}, {0x3F, 0x40, 0x38, 0x40, 0x3F}, {0x63, 0x14, 0x08, 0x14, 0x63},
    {0x07, 0x08, 0x70, 0x08, 0x07}, {0x61, 0x51, 0x49, 0x45, 0x43}, {0x3E, 0x51, 0x49, 0x45, 0x3E},
    {0x00, 0x42, 0x7F, 0x40, 0x00}, {0x42, 0x61, 0x51, 0x49, 0x46}, {0x21, 0x41, 0x45, 0x4B, 0x31},
    {0x18, 0x14, 0x12, 0x7F, 0x10}, {0x27, 0x45, 0x45, 0x45, 0x39}, {0x3C, 0x4A, 0x49, 0x49, 0x30},
    {0x01, 0x71, 0x09, 0x05, 0x03}, {0x36, 0x49, 0x49, 0x49, 0x36}, {0x06, 0x49, 0x49, 0x29, 0x1E},
}};

std::array<uint8_t, 5> glyph_of(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (std::isalpha(byte)) return kGlyphs[static_cast<size_t>(std::toupper(byte) - 'A')];
  if (std::isdigit(byte)) return kGlyphs[static_cast<size_t>(26 + byte - '0')];
  return {};
}

void write_name(Image& sheet, const std::string& name, int64_t left, int64_t top) {
  for (size_t i = 0; i < name.size(); ++i) {
    const auto glyph = glyph_of(name[i]);
    for (int64_t y = 0; y < kGlyphHeight; ++y) {
      for (int64_t x = 0; x < 5 * kZoom; ++x) {
        if (!(glyph[static_cast<size_t>(x / kZoom)] >> (y / kZoom) & 1)) continue;
        uint8_t* pixel = sheet.row(top + y) + 3 * (left + static_cast<int64_t>(i) * kGlyphWidth + x);
        std::fill(pixel, pixel + 3, kInk);
      }
    }
  }
}

void paste(Image& sheet, const Image& picture, int64_t left, int64_t top, int64_t cell) {
  const Image fitted = fit_to_cell(picture, cell);
  left += (cell - fitted.width) / 2;
  top += (cell - fitted.height) / 2;
  for (int64_t y = 0; y < fitted.height; ++y) {
    std::copy_n(fitted.row(y), fitted.width * 3, sheet.row(top + y) + 3 * left);
  }
}

}  // namespace

Image fit_to_cell(const Image& picture, int64_t cell) {
  const int64_t longer = std::max(picture.width, picture.height);
  if (longer == cell) return picture;
  return resize_image(picture, std::max<int64_t>(picture.width * cell / longer, 1),
                      std::max<int64_t>(picture.height * cell / longer, 1));
}

Image contact_sheet(const std::vector<SheetRow>& rows, int64_t cell) {
  size_t letters = 0, columns = 0;
  for (const auto& row : rows) {
    letters = std::max(letters, row.name.size());
    columns = std::max(columns, row.pictures.size());
  }
  const int64_t names = static_cast<int64_t>(letters) * kGlyphWidth + 2 * kGap;
  Image sheet(names + static_cast<int64_t>(columns) * (cell + kGap) + kGap,
              static_cast<int64_t>(rows.size()) * (cell + kGap) + kGap);
  std::fill(sheet.pixels.begin(), sheet.pixels.end(), kPaper);
  int64_t top = kGap;
  for (const auto& row : rows) {
    if (cell >= kGlyphHeight) write_name(sheet, row.name, kGap, top + (cell - kGlyphHeight) / 2);
    int64_t left = names;
    for (const auto& picture : row.pictures) {
      paste(sheet, picture, left, top, cell);
      left += cell + kGap;
    }
    top += cell + kGap;
  }
  return sheet;
}

}  // namespace lockstep::image
