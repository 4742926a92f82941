// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/task/coco_score.h"

namespace lockstep::sources {

// A text and the name that errors call it by.
struct NamedText {
  std::string_view text;
  std::string name;
};

struct CocoEvaluation {
  task::CocoFigures figures;              // classes as below
  std::vector<std::string> classes = {};  // in the order of the categories' numbers
  int64_t images = 0;
  int64_t truths = 0;
  int64_t detections = 0;
  std::vector<std::string> notes = {};  // what was passed over, and what other programs take for something else
};

// Scores a result file (an array of {image_id, category_id, bbox and/or segmentation, score}) against a COCO list
// (images, annotations, categories), as pycocotools does. Memory is about that of the two texts. User error that names
// file, line and fix for whatever is no such file, or would be scored wrongly in silence.
CocoEvaluation score_coco(const NamedText& truth, const NamedText& results, task::CocoIou iou);

}  // namespace lockstep::sources
