// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/json.h"

namespace lockstep::sources {

// KITTI's types of objects, in the order of its development kit; DontCare marks regions that are not evaluated.
const std::vector<std::string>& kitti_types();

// One line of a label or of a result: the type, and the numbers behind it, all of them finite. A box (four from the
// fourth on) that is there does not end before it begins.
struct KittiLine {
  std::string where;  // "000007.txt:3"
  std::string_view type;
  std::vector<double> values;
};
// Empty lines are passed over. User error that names the line.
std::vector<KittiLine> read_kitti_lines(std::string_view text, const std::string& source);

// The text of a label_2/NNNNNN.txt: per line type, truncated, occluded, alpha, four of the box, three dimensions, three
// of the location, rotation (and a score in results). An array of objects as in COCO samples ("label", "category",
// "bbox" as x, y, width, height) with KITTI's own numbers beside. User error that names the line.
base::Json parse_kitti_labels(std::string_view text, const std::string& source);

// The text of a calib/NNNNNN.txt: {"P2": [12 numbers], ...}.
base::Json parse_kitti_calibration(std::string_view text, const std::string& source);

}  // namespace lockstep::sources
