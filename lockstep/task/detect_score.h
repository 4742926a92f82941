// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/spec/job.h"
#include "lockstep/task/objects.h"
#include "lockstep/task/task.h"

namespace lockstep::task {

struct FoundBox {
  image::Box box;  // in pixels of the image as it was
  double score = 0;
};

// What the network found in row `i`, surest first: from the canvas back onto an image of this size, and within it.
std::vector<FoundBox> found_boxes(const Rows& rows, int64_t i, const spec::ImageSize& canvas, int64_t width,
                                  int64_t height);

// Which of the data's classes mean what.
struct DetectClasses {
  std::vector<std::string> names;  // label -> name
  std::vector<bool> is_wanted;     // by label: one of detect.classes
  std::vector<bool> is_ignored;    // by label: KITTI's DontCare
  std::string told;                // the name that found boxes get, and
  int32_t told_label = 0;          // its label

  bool ignores(const Object& object) const { return object.crowd || is_ignored[static_cast<size_t>(object.label)]; }
  bool wants(const Object& object) const { return !ignores(object) && is_wanted[static_cast<size_t>(object.label)]; }
};

// By detect.protocol. `worst`: images with the most missed and invented boxes.
std::unique_ptr<Score> make_detect_score(const spec::Job& job, const DetectClasses& classes, int64_t worst);

// {"width", "height", "objects": [{"class", "label", "score", "box": [x, y, width, height]}]}
base::Json detect_record(int64_t width, int64_t height, const std::vector<FoundBox>& found,
                         const DetectClasses& classes);

}  // namespace lockstep::task
