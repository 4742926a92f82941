// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/coco_list.h"

#include <cmath>
#include <unordered_map>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::data {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

std::string id_of(const Json& value) {
  return value.is_string() ? value.as_string() : std::to_string(value.as_int());
}

bool is_box(const Json& value) {
  if (!value.is_array() || value.size() != 4) return false;
  for (const auto& item : value.items()) {
    if (!item.is_number() || !std::isfinite(item.as_double())) return false;
  }
  return value.items()[2].as_double() >= 0 && value.items()[3].as_double() >= 0;
}

// The number alone is not enough: captions are numbered on their own, as are lists of different makers.
std::string identity_of(const Json& annotation, const std::string& category) {
  std::string all = text(annotation.at("id").dump(-1), " ", base::quote_json(category));
  for (const char* key : {"bbox", "caption"}) {
    if (const Json* value = annotation.find(key)) all += text(" ", key, " ", value->dump(-1));
  }
  return all;
}

}  // namespace

CocoList::CocoList(std::string_view content, std::string source) : text_(content), source_(std::move(source)) {
  std::unordered_map<std::string, size_t> by_id;
  std::vector<JsonSlice> annotations;  // may stand before the images
  bool has_images = false;
  for_each_element(text_, source_, [&](std::string_view key, JsonSlice slice) {
    if (key == "images") {
      has_images = true;
      const Json image = parse_slice(text_, source_, slice);
      const std::string id = id_of(image.at("id"));
      if (!by_id.emplace(id, images_.size()).second)
        throw Error(Blame::user, text(source_, ": the image ", id, " is listed twice"));
      images_.push_back(
          {image.at("file_name").as_string(), image.at("id"), image.int_or("width", 0), image.int_or("height", 0)});
    } else if (key == "categories") {
      const Json category = parse_slice(text_, source_, slice);
      categories_[category.at("id").as_int()] = category.at("name").as_string();
    } else if (key == "annotations") {
      annotations.push_back(slice);
    }
  });
  if (!has_images)
    throw Error(Blame::user, text(source_, ": it lists no images"), "a COCO file has images, annotations, categories");
  for (const JsonSlice slice : annotations) {
    const Json annotation = parse_slice(text_, source_, slice);
    const std::string id = id_of(annotation.at("image_id"));
    const auto found = by_id.find(id);
    if (found == by_id.end())
      throw Error(Blame::user, text(source_, ": an annotation of the image ", id, ", which is not listed"));
    if (const Json* category = annotation.find("category_id"); category && !categories_.contains(category->as_int())) {
      throw Error(Blame::user,
                  text(source_, ": an annotation of category ", category->as_int(), ", which is not listed"));
    }
    if (const Json* box = annotation.find("bbox"); box && !is_box(*box)) {
      throw Error(Blame::user,
                  text(source_, ": the box ", box->dump(-1), " of image ", id, " is no x, y, width, height"));
    }
    images_[found->second].annotations.push_back(slice);
  }
}

void CocoList::describe(size_t image, const std::map<std::string, int32_t>& labels, Json& sample,
                        std::set<std::string>& told) const {
  Json objects = Json::array(), captions = Json::array();
  for (const JsonSlice slice : images_[image].annotations) {
    const Json annotation = parse_slice(text_, source_, slice);
    const Json* const category = annotation.find("category_id");
    const std::string name = category ? categories_.at(category->as_int()) : "";
    if (annotation.contains("id") && !told.insert(identity_of(annotation, name)).second) continue;
    if (const Json* caption = annotation.find("caption")) {
      captions.push_back(caption->as_string());
      continue;
    }
    Json object = Json::object();
    if (category) {
      object["label"] = labels.at(name);
      object["category"] = name;
    }
    for (const auto& member : annotation.members()) {
      if (member.key != "image_id") object[member.key] = member.value;
    }
    objects.push_back(std::move(object));
  }
  for (auto& [key, list] : {std::pair<const char*, Json*>{"objects", &objects}, {"captions", &captions}}) {
    if (list->size() == 0) continue;
    if (!sample.contains(key)) sample[key] = Json::array();
    for (const auto& item : list->items()) sample[key].push_back(item);
  }
}

}  // namespace lockstep::data
