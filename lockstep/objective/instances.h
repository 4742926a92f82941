// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/objective/objective.h"

namespace lockstep::objective {

// Losses of Faster R-CNN, and of Mask R-CNN with `masks`, each float [images]: of an image the mean over what was
// chosen of it, so that ranks and batches change nothing; for one image torchvision's. 0 for an image without anything
// chosen.
struct InstanceLosses {
  at::Tensor objectness;  // anchors: is there an object
  at::Tensor anchor_box;  // where it is
  at::Tensor class_;      // regions: which class
  at::Tensor box;         // where it is
  at::Tensor mask;        // undefined without masks
};
InstanceLosses instance_losses(const model::NamedTensors& outputs);

// Objects with boxes and masks: the network takes the fields (model/rcnn.h). Rows: boxes, scores, labels (and masks) of
// the detections of an image.
std::shared_ptr<const Objective> make_instances(const spec::Instances& settings);

}  // namespace lockstep::objective
