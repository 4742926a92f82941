// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/turned_objects.h"

#include <cmath>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/mask.h"
#include "lockstep/image/turn.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

// A coordinate that was counted from one side, counted from the other. Whole numbers stay whole, decimal ones get no
// more digits than a millionth of a pixel: 80 - 38.98 is 41.02.
Json from_other_side(int64_t size, const Json& at, const Json& extent) {
  const double value = static_cast<double>(size) - at.as_double() - extent.as_double();
  constexpr double kExact = 1e15;
  if (at.is_integer() && extent.is_integer() && std::abs(value) < kExact) return static_cast<int64_t>(value);
  return std::round(value * 1e6) / 1e6;
}

class ObjectTurner {
 public:
  ObjectTurner(int64_t width, int64_t height, int orientation) : width_(width), height_(height), turn_(orientation) {}

  Json box(const Json& box) const {
    const auto& at = box.items();
    return Json::array({seen_x(at[0], at[2], at[1], at[3]), seen_y(at[0], at[2], at[1], at[3]),
                        turn_.swaps ? at[3] : at[2], turn_.swaps ? at[2] : at[3]});
  }

  Json outline(const Json& outline) const {
    if (outline.is_object()) return runs(outline);
    Json polygons = Json::array();
    for (const auto& polygon : outline.items()) polygons.push_back(corners(polygon));
    return polygons;
  }

  // x, y, visibility each; x and y are those of a pixel, which is one wide. One that is not marked is 0, 0, 0.
  Json keypoints(const Json& points) const {
    const auto& at = points.items();
    if (at.size() % 3 != 0) throw Error(Blame::user, "keypoints: x, y, visibility each are expected");
    Json all = Json::array();
    for (size_t i = 0; i < at.size(); i += 3) {
      const bool is_marked = at[i + 2].as_double() > 0;
      all.push_back(is_marked ? seen_x(at[i], 1, at[i + 1], 1) : at[i]);
      all.push_back(is_marked ? seen_y(at[i], 1, at[i + 1], 1) : at[i + 1]);
      all.push_back(at[i + 2]);
    }
    return all;
  }

 private:
  Json across(const Json& x, const Json& extent) const {
    return turn_.from_right ? from_other_side(width_, x, extent) : x;
  }
  Json down(const Json& y, const Json& extent) const {
    return turn_.from_bottom ? from_other_side(height_, y, extent) : y;
  }
  Json seen_x(const Json& x, const Json& width, const Json& y, const Json& height) const {
    return turn_.swaps ? down(y, height) : across(x, width);
  }
  Json seen_y(const Json& x, const Json& width, const Json& y, const Json& height) const {
    return turn_.swaps ? across(x, width) : down(y, height);
  }

  Json corners(const Json& polygon) const {
    const auto& at = polygon.items();
    if (at.size() % 2 != 0) throw Error(Blame::user, "segmentation: a corner is x and y");
    Json all = Json::array();
    for (size_t i = 0; i < at.size(); i += 2) {
      all.push_back(seen_x(at[i], 0, at[i + 1], 0));
      all.push_back(seen_y(at[i], 0, at[i + 1], 0));
    }
    return all;
  }

  Json runs(const Json& outline) const {
    const image::Mask seen = image::turn_mask(image::rasterize_mask(outline, width_, height_), turn_);
    const std::vector<int64_t> runs = image::encode_runs(seen);
    Json all = Json::object();
    for (const auto& member : outline.members()) all[member.key] = member.value;
    all["size"] = Json::array({seen.height, seen.width});
    all["counts"] = outline.at("counts").is_string() ? Json(image::compress_runs(runs)) : Json::array_of(runs);
    return all;
  }

  int64_t width_;
  int64_t height_;
  image::Turn turn_;
};

}  // namespace

int orientation_of_list(const image::ImageInfo& image, int64_t width, int64_t height) {
  const bool swaps = image::Turn(image.orientation).swaps;
  const int64_t stored_width = swaps ? image.height : image.width;
  const int64_t stored_height = swaps ? image.width : image.height;
  if (width == stored_width && height == stored_height) return image.orientation;
  if (width == image.width && height == image.height) return 1;
  throw Error(Blame::user,
              text("its annotations are drawn on ", width, " x ", height, " pixels, and it has ", stored_width, " x ",
                   stored_height),
              "are these the images that the list was made for?");
}

void turn_objects(Json& sample, int orientation) {
  if (orientation == 1) return;
  const int64_t width = sample.at("width").as_int(), height = sample.at("height").as_int();
  const ObjectTurner turner(width, height, orientation);
  if (image::Turn(orientation).swaps) {
    sample["width"] = height;
    sample["height"] = width;
  }
  const Json* objects = sample.find("objects");
  if (!objects) return;
  Json turned = Json::array();
  for (Json object : objects->items()) {
    if (Json* box = object.find("bbox")) *box = turner.box(*box);
    if (Json* outline = object.find("segmentation"); outline && !outline->is_null())
      *outline = turner.outline(*outline);
    if (Json* points = object.find("keypoints")) *points = turner.keypoints(*points);
    turned.push_back(std::move(object));
  }
  sample["objects"] = std::move(turned);
}

}  // namespace lockstep::sources
