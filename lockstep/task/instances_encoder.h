// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/task/task.h"

namespace lockstep::task {

// The fields of task instances on one of its canvases (instances_view.h). Slots: instances.slots of them, the first
// ones filled.
//   image   as instances_view.h says, in the upper left corner; the rest is blank
//   shown   fp32 [2]: height and width of the part that shows the image; 0, 0 of a sample that could not be read
//   boxes   fp32 [slots, 4]: left, top, right, bottom in pixels of the image as shown
//   labels  int64 [slots]: 0 of an empty slot, classes from 1 on
//   masks   uint8 [slots, instances.mask_size, the same] (mask_window.h); only with instances.masks
std::vector<Field> instances_fields(const spec::Job& job, int64_t canvas = 0);

// Crowds are not learnt, nor what is less than a pixel wide or high as shown; of more objects than slots the largest
// are.
std::unique_ptr<Encoder> make_instances_encoder(const spec::Job& job, std::vector<std::string> classes);

}  // namespace lockstep::task
