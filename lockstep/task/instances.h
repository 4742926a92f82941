// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/task/task.h"

namespace lockstep::task {

// Objects in images: a box, a class and a mask each. Fields besides "image": "shown" [2] (height and width that are
// image, in pixels of the canvas; 0: a blank image), "boxes" [slots, 4] (x1 y1 x2 y2), "labels" [slots] (0: an empty
// slot, classes from 1 on), "masks" [slots, cells, cells] with masks.
std::unique_ptr<Task> make_instances(const spec::Job& job);

}  // namespace lockstep::task
