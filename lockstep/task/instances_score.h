// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/task/context.h"
#include "lockstep/task/task.h"

namespace lockstep::task {

// COCO's average precision of boxes and, of a network that gives them, of masks, on images in the pixels in which they
// were annotated. The headline is that of the masks, or that of the boxes where no object has an outline. Objects
// without an outline are not asked for in the score of the masks, nor do detections on them count against it. The worst
// images are those with most objects that were missed or told wrongly, at a score and an overlap of one half.
// `context`: what changes the scores of detections; null: nothing. With it the headline without it is told besides.
std::unique_ptr<Score> make_instances_score(std::vector<std::string> classes, bool has_masks, int64_t worst,
                                            std::shared_ptr<const Context> context = nullptr);

}  // namespace lockstep::task
