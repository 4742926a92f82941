// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/image/image.h"

namespace lockstep::image {

// One row a class: its name, then its pictures, each fitted into a square cell.
struct SheetRow {
  std::string name;
  std::vector<Image> pictures;
};

// The picture as large as a cell shows it. Of what was fitted before, the sheet shows the same pixels.
Image fit_to_cell(const Image& picture, int64_t cell);

Image contact_sheet(const std::vector<SheetRow>& rows, int64_t cell);

}  // namespace lockstep::image
