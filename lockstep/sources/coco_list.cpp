// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/coco_list.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/mask.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

// Beside what every list of COCO's own has.
Json image_columns(const Json& image) {
  constexpr std::string_view kUsual[] = {"id",      "file_name", "width",      "height",
                                         "license", "coco_url",  "flickr_url", "date_captured"};
  Json columns;
  for (const auto& member : image.members()) {
    if (std::find(std::begin(kUsual), std::end(kUsual), member.key) != std::end(kUsual)) continue;
    if (!member.value.is_number() && !member.value.is_string()) continue;
    if (columns.is_null()) columns = Json::object();
    columns[member.key] = member.value;
  }
  return columns;
}

std::string id_of(const Json& value) {
  return value.is_string() ? value.as_string() : std::to_string(value.as_int());
}

constexpr const char* kFix = "correct the list: images have id and file_name, annotations image_id and category_id";

// A box of x, y, width, height that has an area. User error for what is no box.
bool has_area(const Json& box) {
  const auto is_finite = [](const Json& value) { return value.is_number() && std::isfinite(value.as_double()); };
  const bool is_box =
      box.is_array() && box.size() == 4 && std::all_of(box.items().begin(), box.items().end(), is_finite);
  if (!is_box)
    throw Error(Blame::user, text(box.where(), ": the box ", box.dump(-1), " is no x, y, width, height"),
                "correct the box, or remove the annotation");
  return box.items()[2].as_double() > 0 && box.items()[3].as_double() > 0;
}

// As read_slice; every complaint gets a fix.
template <class Read>
auto read_entry(std::string_view content, const std::string& source, JsonSlice slice, const Read& read) {
  try {
    return read_slice(content, source, slice, read);
  } catch (const Error& error) {
    if (!error.fix().empty()) throw;
    throw Error(error.blame(), error.what(), kFix);
  }
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

void leave_out_bad_outlines(Json& sample) {
  Json* const objects = sample.find("objects");
  if (!objects) return;
  const int64_t width = sample.at("width").as_int(), height = sample.at("height").as_int();
  Json kept = Json::array();
  for (Json object : objects->items()) {
    const Json* outline = object.find("segmentation");
    try {
      if (outline && !outline->is_null()) (void)image::outline_switches(*outline, width, height);
    } catch (const Error& error) {
      if (error.blame() != Blame::user) throw;
      object.erase("segmentation");
      object[kOutlineLeftOut] = error.what();
    }
    kept.push_back(std::move(object));
  }
  *objects = std::move(kept);
}

CocoList::CocoList(std::string_view content, std::string source) : text_(content), source_(std::move(source)) {
  std::unordered_map<std::string, size_t> by_id;
  std::vector<JsonSlice> annotations;  // may stand before the images
  bool has_images = false;
  for_each_element(text_, source_, [&](std::string_view key, JsonSlice slice) {
    if (key == "images") {
      has_images = true;
      add_image(slice, by_id);
    } else if (key == "categories") {
      const auto [id, name] = read_entry(text_, source_, slice, [](const Json& category) {
        return std::pair(category.at("id").as_int(), category.at("name").as_string());
      });
      categories_[id] = name;
    } else if (key == "annotations") {
      annotations.push_back(slice);
    }
  });
  if (!has_images)
    throw Error(Blame::user, text(source_, ": it lists no images"), "a COCO file has images, annotations, categories");
  for (const JsonSlice slice : annotations) add_annotation(slice, by_id);
  ids_.clear();  // they were for the notes
}

namespace {

// Of an image whose list says its size.
bool lies_outside(const std::vector<double>& box, const CocoImage& image) {
  if (box.size() != 4 || image.width <= 0 || image.height <= 0) return false;
  return box[0] >= static_cast<double>(image.width) || box[1] >= static_cast<double>(image.height) ||
         box[0] + box[2] <= 0 || box[1] + box[3] <= 0;
}

}  // namespace

void CocoList::add_image(JsonSlice slice, std::unordered_map<std::string, size_t>& by_id) {
  std::string key;
  CocoImage image = read_entry(text_, source_, slice, [&](const Json& one) {
    const Json& id = one.at("id");
    key = id_of(id);
    CocoImage read{one.at("file_name").as_string(), id, one.int_or("width", 0), one.int_or("height", 0)};
    read.columns = image_columns(one);
    const auto known = by_id.find(key);
    if (known != by_id.end() && images_[known->second].file_name != read.file_name) {
      throw Error(Blame::user,
                  text(id.where(), ": the image ", key, " is ", base::quote_json(read.file_name), " here, and ",
                       base::quote_json(images_[known->second].file_name), " before"),
                  "give each image a number of its own");
    }
    return read;
  });
  if (by_id.emplace(key, images_.size()).second) {
    images_.push_back(std::move(image));
  } else {
    left_out_.push_back({text(source_, ": image ", key), "listed twice"});
  }
}

void CocoList::add_annotation(JsonSlice slice, const std::unordered_map<std::string, size_t>& by_id) {
  struct Entry {
    std::string id;
    std::string image;
    std::string flat_box;
    std::vector<double> box = {};  // x, y, width, height, where it is one
  };
  const Entry entry = read_entry(text_, source_, slice, [&](const Json& annotation) {
    if (const Json* category = annotation.find("category_id"); category && !categories_.contains(category->as_int())) {
      throw Error(Blame::user,
                  text(category->where(), ": the category ", category->as_int(), " is not listed in \"categories\""),
                  "add it there, or remove the annotation");
    }
    if (const Json* caption = annotation.find("caption")) caption->as_string();
    const Json *id = annotation.find("id"), *box = annotation.find("bbox");
    Entry read{id ? id->dump(-1) : "without a number", id_of(annotation.at("image_id")),
               box && !has_area(*box) ? box->dump(-1) : ""};
    if (box && read.flat_box.empty()) {
      for (const auto& one : box->items()) read.box.push_back(one.as_double());
    }
    if (id && !ids_.insert(read.id).second && repeated_++ == 0) first_repeated_ = read.id;
    return read;
  });
  const auto found = by_id.find(entry.image);
  const std::string name = text(source_, ": annotation ", entry.id);
  if (found == by_id.end()) {
    left_out_.push_back({name, text("of the image ", entry.image, ", which is not listed")});
  } else if (!entry.flat_box.empty()) {
    left_out_.push_back({name, text("the box ", entry.flat_box, " of image ", entry.image, " has no area")});
  } else {
    CocoImage& image = images_[found->second];
    if (lies_outside(entry.box, image) && outside_++ == 0) first_outside_ = entry.id;
    image.annotations.push_back(slice);
  }
}

std::vector<std::string> CocoList::notes() const {
  std::vector<std::string> all;
  if (outside_ > 0) {
    all.push_back(text(source_, ": ", outside_, outside_ == 1 ? " box lies" : " boxes lie",
                       " outside of the image, such as that of annotation ", first_outside_,
                       ": kept for the score, and not learnt"));
  }
  if (repeated_ > 0) {
    all.push_back(text(source_, ": ", repeated_, repeated_ == 1 ? " annotation has" : " annotations have",
                       " the number of another, such as ", first_repeated_,
                       ": kept, unless category and box are the same too"));
  }
  return all;
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
      if (member.key != "image_id" && !object.contains(member.key)) object[member.key] = member.value;
    }
    objects.push_back(std::move(object));
  }
  for (auto& [key, list] : {std::pair<const char*, Json*>{"objects", &objects}, {"captions", &captions}}) {
    if (list->size() == 0) continue;
    if (!sample.contains(key)) sample[key] = Json::array();
    for (const auto& item : list->items()) sample[key].push_back(item);
  }
}

}  // namespace lockstep::sources
