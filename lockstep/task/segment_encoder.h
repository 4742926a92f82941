// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/task/task.h"

namespace lockstep::task {

constexpr uint8_t kNoClass = 255;  // of a pixel of the field "labels"

std::vector<Field> segment_fields(const spec::Job& job);

// Image and labels in one view: a random crop while training, the whole image, stretched to data.image_size, otherwise;
// colours are the image's alone. `classes`: those of the data, for segment.pixels objects. User error for a label image
// of another size than its image, and for values that are no label.
std::unique_ptr<Encoder> make_segment_encoder(const spec::Job& job, std::vector<std::string> classes,
                                              int64_t num_labels);

}  // namespace lockstep::task
