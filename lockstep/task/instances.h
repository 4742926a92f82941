// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/task/task.h"

namespace lockstep::task {

// Objects in images, each with its class, its box and, of a network that gives them, its mask. They stand in a sample's
// "json" member (objects.h). Fields: instances_encoder.h. Rows: `boxes` [D, 4] left, top, right, bottom in pixels of
// the network's image, `scores` [D] (0: an empty slot), `labels` [D] (from 1 on), `masks` [D, side, side]
// probabilities.
std::unique_ptr<Task> make_instances(const spec::Job& job, std::vector<std::string> classes = {});

}  // namespace lockstep::task
