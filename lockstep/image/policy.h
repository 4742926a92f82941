// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lockstep/base/random.h"
#include "lockstep/image/image.h"
#include "lockstep/spec/image_size.h"

namespace lockstep::image {

// The operations that RandAugment (Cubuk et al. 2020) and TrivialAugment (Mueller and Hutter 2021) draw from, as
// torchvision has them: on 8-bit pixels, nearest neighbour, black beyond the edges.
enum class Operation {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  color,
  contrast,
  sharpness,
  posterize,
  solarize,
  autocontrast,
  equalize
};
constexpr int kNumOperations = 14;

struct Change {
  Operation operation = Operation::identity;
  // Tangent of the shear, pixels, degrees against the clock, factor - 1, bits that stay, threshold; of the others none.
  double magnitude = 0;

  bool operator==(const Change&) const = default;
};

// RandAugment's defaults: two operations, magnitude 9 of 31.
std::vector<Change> draw_rand_augment(const spec::ImageSize& size, base::Random& random);
// TrivialAugmentWide: one operation, any of its 31 magnitudes.
std::vector<Change> draw_trivial_augment(base::Random& random);

// `scratch` keeps its memory from one call to the next.
void apply(const Change& change, Image& image, Image& scratch);

}  // namespace lockstep::image
