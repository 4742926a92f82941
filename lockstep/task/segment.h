// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/task/task.h"

namespace lockstep::task {

// The class of every pixel, from a label image besides the image ("seg.png"; segment_encoder.h). Fields "image" and
// "labels" [H, W]. Rows: "log_probabilities" [classes, H, W]. `classes`: those of the data, as far as they are known.
std::unique_ptr<Task> make_segment(const spec::Job& job, std::vector<std::string> classes = {});

// What the labels are called: the job's, or the data's; with objects, behind "background". Empty: not known yet.
std::vector<std::string> segment_names(const spec::Segment& segment, const std::vector<std::string>& classes);

}  // namespace lockstep::task
