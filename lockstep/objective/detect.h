// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/objective/objective.h"

namespace lockstep::objective {

// Boxes around the objects of one kind, as FastBox gives them: for each cell of 32 x 32 pixels a confidence and a box,
// and both a second time. Fields "object" (1: the cell answers for one), "box" and "mask" (0: what the cell says counts
// for nothing), [rows, cells] and [rows, cells, 4]; outputs "confidence", "box", "confidence2" and "delta".
// The loss of a sample is a mean over its cells, of the four parts that KittiBox has.
// Rows for the score: "boxes" [rows, 100 * 4] (left, top, right, bottom in pixels of the canvas), "scores" (the surest
// first; 0: there is no box), "labels" (1, or 0).
std::shared_ptr<const Objective> make_detect(const spec::Job& job);

}  // namespace lockstep::objective
