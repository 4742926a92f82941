// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/task/task.h"

namespace lockstep::task {

// Boxes around the objects of one kind, from a grid of cells (FastBox). Fields "image", "object", "box" and "mask"
// (detect_grid.h); the image is stretched to the canvas. `classes`: those of the data; empty: not known yet. User error
// when detect.classes are not among them, when cells do not tile the canvas, and when KITTI scores no such class.
std::unique_ptr<Task> make_detect(const spec::Job& job, std::vector<std::string> classes);

}  // namespace lockstep::task
