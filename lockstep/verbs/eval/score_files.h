// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/base/json.h"
#include "lockstep/sources/coco_results.h"
#include "lockstep/sources/kitti_results.h"

namespace lockstep::verbs::eval {

// Figures of somebody's result files, flat; -1 where there is nothing to find.
base::Json coco_json(const sources::CocoEvaluation& evaluation, task::CocoIou iou);
// Keys "car_easy_ap11", ... "cyclist_hard_kittibox" (the mean of 41 by KittiBox's rule); null for a class that nobody
// detects.
base::Json kitti_json(const sources::KittiEvaluation& evaluation);

// The same for a terminal.
std::string coco_text(const sources::CocoEvaluation& evaluation, task::CocoIou iou);
std::string kitti_text(const sources::KittiEvaluation& evaluation);

}  // namespace lockstep::verbs::eval
