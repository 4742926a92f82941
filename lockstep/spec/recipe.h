// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/base/json.h"

namespace lockstep::spec {

// The recipe for a job that starts from trained weights and says no recipe of its own: the head on cached features of
// each image and its mirror image, then the whole network at a small rate with its batch norms held. Puts it into the
// document (overrides applied) and returns it in one line. Leaves the document alone, and returns "", where it has no
// model.weights or states a recipe of its own: training.schedule, phases or steps, another optimizer than adamw, or an
// optimizer and epochs. training.optimizer.lr and its other keys change the recipe where they stand without a length;
// training.epochs, where it stands without an optimizer, is the length of the second part.
std::string add_recipe(base::Json& document);

// The document's network ends in an average over the image, so that its weights fit any size.
bool takes_any_size(const base::Json& document);

}  // namespace lockstep::spec
