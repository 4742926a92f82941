// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/task/context.h"
#include "lockstep/task/task.h"

namespace lockstep::task {

struct Detection {
  int32_t label = 0;                 // among the classes, from 0 on
  float score = 0;                   // 0 to 1
  float plain_score = 0;             // the same before the context changed it
  std::array<float, 4> box = {};     // left, top, right, bottom in pixels of the image as it was annotated, or is seen
  std::span<const float> mask = {};  // [side, side] probabilities inside of the box; empty of a network without masks

  int64_t mask_side() const;
  std::vector<int64_t> runs(int64_t width, int64_t height) const;  // of the mask on the image (paste_mask.h)
};

struct ImageExtent {
  int64_t width = 0;
  int64_t height = 0;
};

// Of the annotation of row `i`. REQUIRES: it has one.
ImageExtent extent_of(const Rows& rows, int64_t i);

// What was found on the image of row `i`, highest score first. Slots that are empty or hold no numbers are left out,
// and labels that are none of `num_classes`. `context`: what changes their scores; null: nothing.
std::vector<Detection> detections_of(const Rows& rows, int64_t i, const ImageExtent& image, int64_t num_classes,
                                     const Context* context = nullptr);

}  // namespace lockstep::task
