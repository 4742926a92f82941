// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/objects.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/runs.h"
#include "lockstep/task/json_member.h"
#include "lockstep/task/kitti_score.h"

namespace lockstep::task {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

// Why an object is none.
class NoObject : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

image::Box box_of(const Json& object) {
  const Json* box = object.find("bbox");
  const auto is_number = [](const Json& value) { return value.is_number() && std::isfinite(value.as_double()); };
  const bool is_box =
      box && box->is_array() && box->size() == 4 && std::all_of(box->items().begin(), box->items().end(), is_number);
  if (!is_box) {
    throw NoObject(
        text("its bbox is ", box ? box->dump(-1) : "missing", ", and x, y, width, height in pixels are expected"));
  }
  const auto& at = box->items();
  const double x = at[0].as_double(), y = at[1].as_double(), width = at[2].as_double(), height = at[3].as_double();
  if (width < 0 || height < 0) throw NoObject(text("its bbox ", box->dump(-1), " has a size below 0"));
  return {x, y, x + width, y + height};
}

// By name where there is one: a list of another maker may number the same classes in another way.
int32_t label_of(const Json& object, const std::vector<std::string>& classes) {
  if (const Json* name = object.find("category"); name && name->is_string()) {
    const auto found = std::find(classes.begin(), classes.end(), name->as_string());
    if (found == classes.end()) {
      const std::string near = base::did_you_mean(name->as_string(), classes);
      throw NoObject(text("its class ", base::quote_json(name->as_string()), " is none of the training data's",
                          near.empty() ? "" : "; ", near));
    }
    return static_cast<int32_t>(found - classes.begin());
  }
  const int64_t label = object.int_or("label", -1);
  if (label < 0 || label >= std::ssize(classes))
    throw NoObject(text("its label ", label, " is none of ", classes.size(), " classes, and it has no \"category\""));
  return static_cast<int32_t>(label);
}

// COCO writes 0 or 1, some tools write true and false.
bool is_set(const Json& object, const char* key) {
  const Json* value = object.find(key);
  if (!value || value->is_null()) return false;
  return value->is_number() ? value->as_double() != 0 : value->as_bool();
}

Object object_of(const Json& one, const AnnotatedImage& image, const std::vector<std::string>& classes) {
  if (!one.is_object()) throw NoObject("it is no JSON object");
  const auto width = static_cast<double>(image.width), height = static_cast<double>(image.height);
  Object object;
  object.box = box_of(one);
  object.label = label_of(one, classes);
  object.inside = {std::clamp(object.box.left, 0.0, width), std::clamp(object.box.top, 0.0, height),
                   std::clamp(object.box.right, 0.0, width), std::clamp(object.box.bottom, 0.0, height)};
  object.crowd =
      is_set(one, "iscrowd") || kitti_type(classes[static_cast<size_t>(object.label)]) == KittiType::dont_care;
  object.area = one.double_or("area", object.box.area());
  object.truncated = one.double_or("truncated", 0);
  object.occluded = static_cast<int64_t>(std::clamp(one.double_or("occluded", 0), -1.0, 3.0));  // KITTI's levels
  if (const Json* outline = one.find("segmentation"); outline && !outline->is_null() && outline->size() > 0)
    object.outline = *outline;
  return object;
}

}  // namespace

AnnotatedImage read_objects(const Json& document, const std::vector<std::string>& classes) {
  AnnotatedImage image{document.at("width").as_int(), document.at("height").as_int()};
  if (image.width <= 0 || image.height <= 0)
    throw Error(Blame::user, text("the sample's json says ", image.width, " x ", image.height, " pixels"));
  const Json* objects = document.find("objects");
  if (!objects) return image;
  for (size_t i = 0; i < objects->size(); ++i) {
    try {
      image.objects.push_back(object_of(objects->items()[i], image, classes));
      image.objects.back().number = static_cast<int64_t>(i);
    } catch (const NoObject& wrong) {
      image.left_out.push_back(text("object ", i, ": ", wrong.what()));
    } catch (const Error& wrong) {  // a value of another type
      if (wrong.blame() != Blame::user) throw;
      image.left_out.push_back(text("object ", i, ": ", wrong.what()));
    }
  }
  return image;
}

void drop_bad_outlines(AnnotatedImage& image) {
  for (size_t i = 0; i < image.objects.size(); ++i) {
    Object& object = image.objects[i];
    if (object.outline.is_null()) continue;
    try {
      (void)image::read_segmentation(object.outline, image.width, image.height);
    } catch (const Error& wrong) {
      if (wrong.blame() != Blame::user) throw;
      image.left_out.push_back(text("the outline of object ", object.number, ": ", wrong.what()));
      object.outline = {};
    }
  }
}

AnnotatedImage read_objects(std::span<const std::byte> member, const std::vector<std::string>& classes) {
  return read_objects(read_json_member(member), classes);
}

std::string annotation_text(std::span<const std::byte> member) {
  return {reinterpret_cast<const char*>(member.data()), member.size()};
}

std::string annotation_text(int64_t width, int64_t height) {
  return text("{\"width\": ", width, ", \"height\": ", height, "}");
}

std::string annotation_with_columns(const std::string& annotation, base::Json columns) {
  base::Json all = read_json_member(std::as_bytes(std::span(annotation.data(), annotation.size())));
  all["columns"] = std::move(columns);
  return all.dump(-1);
}

}  // namespace lockstep::task
