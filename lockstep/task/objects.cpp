// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/objects.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/task/json_member.h"

namespace lockstep::task {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

[[noreturn]] void complain(size_t index, const std::string& what, const std::string& fix) {
  throw Error(Blame::user, text("object ", index, " of the sample's json: ", what), fix);
}

image::Box box_of(const Json& object, size_t index) {
  const Json* box = object.find("bbox");
  const auto is_number = [](const Json& value) { return value.is_number() && std::isfinite(value.as_double()); };
  const bool is_box =
      box && box->is_array() && box->size() == 4 && std::all_of(box->items().begin(), box->items().end(), is_number);
  if (!is_box)
    complain(index, text("its bbox is ", box ? box->dump(-1) : "missing"),
             "x, y, width, height in pixels are expected");
  const auto& at = box->items();
  const double x = at[0].as_double(), y = at[1].as_double(), width = at[2].as_double(), height = at[3].as_double();
  if (width < 0 || height < 0) complain(index, text("its bbox ", box->dump(-1), " has a size below 0"), "correct it");
  return {x, y, x + width, y + height};
}

// By name where there is one: a list of another maker may number the same classes in another way.
int32_t label_of(const Json& object, size_t index, const std::vector<std::string>& classes) {
  if (const Json* name = object.find("category"); name && name->is_string()) {
    const auto found = std::find(classes.begin(), classes.end(), name->as_string());
    if (found == classes.end()) {
      complain(index, text("its class ", base::quote_json(name->as_string()), " is none of the training data's"),
               base::did_you_mean(name->as_string(), classes));
    }
    return static_cast<int32_t>(found - classes.begin());
  }
  const int64_t label = object.int_or("label", -1);
  if (label < 0 || label >= std::ssize(classes))
    complain(index, text("its label ", label, " is none of ", classes.size(), " classes"), "give it a \"category\"");
  return static_cast<int32_t>(label);
}

// COCO writes 0 or 1, some tools write true and false.
bool is_set(const Json& object, const char* key) {
  const Json* value = object.find(key);
  if (!value || value->is_null()) return false;
  return value->is_number() ? value->as_double() != 0 : value->as_bool();
}

}  // namespace

AnnotatedImage read_objects(const Json& document, const std::vector<std::string>& classes) {
  AnnotatedImage image{document.at("width").as_int(), document.at("height").as_int()};
  if (image.width <= 0 || image.height <= 0)
    throw Error(Blame::user, text("the sample's json says ", image.width, " x ", image.height, " pixels"));
  const Json* objects = document.find("objects");
  if (!objects) return image;
  const auto width = static_cast<double>(image.width), height = static_cast<double>(image.height);
  for (size_t i = 0; i < objects->size(); ++i) {
    const Json& one = objects->items()[i];
    Object& object = image.objects.emplace_back();
    object.box = box_of(one, i);
    object.label = label_of(one, i, classes);
    object.inside = {std::clamp(object.box.left, 0.0, width), std::clamp(object.box.top, 0.0, height),
                     std::clamp(object.box.right, 0.0, width), std::clamp(object.box.bottom, 0.0, height)};
    object.crowd = is_set(one, "iscrowd");
    object.area = one.double_or("area", object.box.area());
    object.truncated = one.double_or("truncated", 0);
    object.occluded = static_cast<int64_t>(one.double_or("occluded", 0));
    if (const Json* outline = one.find("segmentation"); outline && !outline->is_null() && outline->size() > 0)
      object.outline = *outline;
  }
  return image;
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

}  // namespace lockstep::task
