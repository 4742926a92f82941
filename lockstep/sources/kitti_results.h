// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/task/kitti_score.h"

namespace lockstep::sources {

// The text of one file. An empty one is legal: nothing there, nothing found. User error that names line and fix.
std::vector<task::KittiTruth> parse_kitti_truths(std::string_view text, const std::string& source);
std::vector<task::KittiDetection> parse_kitti_results(std::string_view text, const std::string& source);

struct KittiEvaluation {
  std::array<task::KittiClass, 3> devkit;
  std::array<task::KittiClass, 3> kittibox;
  int64_t images = 0;
  int64_t truths = 0;  // lines of labels, DontCare included
  int64_t detections = 0;
  std::vector<std::string> notes = {};  // what was missing, what was passed over
};

// Scores a folder of result files NNNNNN.txt against the labels of the same names. User error that names what is wrong.
KittiEvaluation score_kitti(const base::Path& labels, const base::Path& results);

}  // namespace lockstep::sources
