// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/objective/objective.h"

namespace lockstep::objective {

// Binary cross-entropy of each class, the mean over the classes of an image.
std::shared_ptr<const Objective> make_multilabel();

}  // namespace lockstep::objective
