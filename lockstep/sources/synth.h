// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/image/image.h"

namespace lockstep::sources {

// `shapes`: drawn images that a network can learn and a linear model on pixels cannot. One shape or texture each, of
// any colour, place, size and angle, on a background of gradients, noise and clutter.
constexpr int64_t kMaxShapes = 10;

// The first `count` kinds, in the order of their labels (sorted, as the folders are). REQUIRES: 2 .. kMaxShapes
std::vector<std::string> shape_names(int64_t count);

// Image `index` of the set that `seed` fixes, showing `shape`, a square of `size` pixels. The same pixels in any thread
// and on every machine with the same mathematics library.
image::Image draw_shape(const std::string& shape, int64_t size, int64_t seed, int64_t index);

struct SceneObject {
  int64_t label = 0;  // position of the shape in shape_names
  double x = 0, y = 0, width = 0, height = 0;
  std::vector<double> outline;  // x, y, x, y, ...: the outer edge of the shape, in pixels
};

struct Scene {
  image::Image image;
  std::vector<SceneObject> objects;  // from left to right, none over another
};

// Image `index` of a set of scenes with one to four shapes of the first `classes` kinds, whole and apart.
Scene draw_scene(int64_t width, int64_t height, int64_t classes, int64_t seed, int64_t index);

}  // namespace lockstep::sources
