// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/draw_objects.h"

#include <algorithm>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/image/draw.h"

namespace lockstep::task {
namespace {

constexpr double kMaskShare = 0.45;  // of the class's colour

double score_of(const base::Json& object) {
  return object.double_or("score", 1);
}

image::Color color_of(const base::Json& object) {
  return image::class_color(object.int_or("label", 0));
}

void blend_object(const base::Json& object, int64_t width, int64_t height, image::Image& image) {
  const base::Json* segmentation = object.find("segmentation");
  if (!segmentation || segmentation->is_null()) return;
  try {
    image::blend_mask(image, image::rasterize_mask(*segmentation, width, height), color_of(object), kMaskShare);
  } catch (const base::Error&) {  // of another size: its box is drawn all the same
  }
}

void draw_truths(const base::Json& record, double across, double down, image::Image& image) {
  const base::Json* truths = record.find("truths");
  for (size_t i = 0; truths && i < truths->size(); ++i) {
    const auto& box = truths->items()[i].at("box").items();  // x, y, width, height
    const double left = box[0].as_double() * across, top = box[1].as_double() * down;
    image::draw_box(image, {left, top, left + box[2].as_double() * across, top + box[3].as_double() * down},
                    {255, 255, 255}, image::fitting_zoom(image));
  }
}

}  // namespace

bool draw_objects(const base::Json& record, image::Image& image) {
  const base::Json* objects = record.find("objects");
  if (!objects || !objects->is_array()) return false;
  const int64_t width = record.int_or("width", image.width), height = record.int_or("height", image.height);
  if (width < 1 || height < 1) return false;
  std::vector<const base::Json*> drawn;
  for (const auto& object : objects->items()) {
    if (score_of(object) >= kLeastDrawn && object.at("box").size() == 4) drawn.push_back(&object);
  }
  std::stable_sort(drawn.begin(), drawn.end(),
                   [](const base::Json* a, const base::Json* b) { return score_of(*a) < score_of(*b); });
  for (const auto* object : drawn) blend_object(*object, width, height, image);
  const double across = static_cast<double>(image.width) / static_cast<double>(width);
  const double down = static_cast<double>(image.height) / static_cast<double>(height);
  draw_truths(record, across, down, image);
  for (const auto* object : drawn) {
    const auto& box = object->at("box").items();
    const double x = box[0].as_double(), y = box[1].as_double(), w = box[2].as_double(), h = box[3].as_double();
    const std::string words = base::text(object->string_or("class", ""), " ", base::fixed(score_of(*object), 2));
    image::draw_object(image, {{x * across, y * down, (x + w) * across, (y + h) * down}, words, color_of(*object)});
  }
  return true;
}

}  // namespace lockstep::task
