// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/objective/objective.h"

namespace lockstep::objective {

// The class of every pixel. A row's loss is the mean cross-entropy of its pixels that have a label, each weighed by its
// class (training.class_weights), and segment.dice times its Dice loss. Field "labels" uint8 [rows, height, width],
// 255: no class; output "logit_map" [rows, classes, height, width].
std::shared_ptr<const Objective> make_segment(const spec::Job& job, const std::vector<std::string>& classes);

}  // namespace lockstep::objective
