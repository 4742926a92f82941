// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/contact_sheet.h"

#include <algorithm>

#include "lockstep/image/decode.h"
#include "lockstep/image/draw.h"

namespace lockstep::image {
namespace {

constexpr int64_t kGap = 6, kNameZoom = 2, kNameHeight = kLetterHeight * kNameZoom;
constexpr uint8_t kPaper = 250;
constexpr Color kInk{40, 40, 40};

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
  int64_t names = 0;
  size_t columns = 0;
  for (const auto& row : rows) {
    names = std::max(names, text_width(row.name, kNameZoom));
    columns = std::max(columns, row.pictures.size());
  }
  names += 2 * kGap;
  Image sheet(names + static_cast<int64_t>(columns) * (cell + kGap) + kGap,
              static_cast<int64_t>(rows.size()) * (cell + kGap) + kGap);
  std::fill(sheet.pixels.begin(), sheet.pixels.end(), kPaper);
  int64_t top = kGap;
  for (const auto& row : rows) {
    if (cell >= kNameHeight) draw_text(sheet, row.name, kGap, top + (cell - kNameHeight) / 2, kInk, kNameZoom);
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
