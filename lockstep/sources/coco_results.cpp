// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/coco_results.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/mask.h"
#include "lockstep/image/runs.h"
#include "lockstep/sources/json_slices.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;
using task::CocoIou;

constexpr const char* kTruthFix =
    "images have id, width and height; annotations id, image_id, category_id, bbox, area, iscrowd and segmentation";
constexpr const char* kResultFix =
    "a result is {\"image_id\": 7, \"category_id\": 1, \"bbox\": [x, y, w, h], \"score\": 0.9}";

[[noreturn]] void refuse(const Json& at, const std::string& what, const std::string& fix) {
  throw Error(Blame::user, text(at.where(), ": ", what), fix);
}

// JSON knows no NaN, Python writes it all the same: said as what it is, not as a word that should be quoted.
void explain_nonfinite(const NamedText& file, JsonSlice slice) {
  const std::string_view value = file.text.substr(slice.offset, slice.size);
  for (const char* word : {"NaN", "Infinity"}) {
    const size_t at = value.find(word);
    if (at == std::string_view::npos) continue;
    const auto begin = file.text.begin();
    const auto line = 1 + std::count(begin, begin + static_cast<int64_t>(slice.offset + at), '\n');
    throw Error(Blame::user, text(file.name, ":", line, ": ", word, " is no number of a box or a score"),
                "leave it out, and look at the program that wrote it");
  }
}

// What `read` makes of an element; every complaint has a place and a fix. `read` may be called twice.
template <class Read>
auto read_element(const NamedText& file, JsonSlice slice, const char* fix, const Read& read) {
  try {
    return read_slice(file.text, file.name, slice, read);
  } catch (const Error& error) {
    explain_nonfinite(file, slice);
    const bool is_about_documents = error.fix().starts_with("quote it");  // base::Json's, for a number out of range
    if (!error.fix().empty() && !is_about_documents) throw;
    throw Error(error.blame(), error.what(), fix);
  }
}

double finite_number(const Json& value, const char* what) {
  if (!value.is_number() || !std::isfinite(value.as_double()))
    refuse(value, text(what, " is ", value.dump(-1), ", no finite number"), "");
  return value.as_double();
}

// Some programs write 7.0 for the image 7.
int64_t read_id(const Json& value) {
  constexpr double kExact = 9007199254740992;  // 2^53
  if (!value.is_number() || value.is_integer()) return value.as_int();
  const double number = value.as_double();
  return std::trunc(number) == number && std::abs(number) < kExact ? static_cast<int64_t>(number) : value.as_int();
}

std::array<double, 4> read_box(const Json& value) {
  if (!value.is_array() || value.size() != 4)
    refuse(value, text("the box ", value.dump(-1), " is not x, y, width, height"), "");
  std::array<double, 4> box = {};
  for (size_t i = 0; i < 4; ++i) box[i] = finite_number(value.items()[i], "a number of the box");
  if (box[2] < 0 || box[3] < 0)
    refuse(value, text("the box ", value.dump(-1), " has a negative size"),
           "COCO's boxes are x, y, width, height: not two corners");
  return box;
}

bool read_flag(const Json* value) {
  if (!value) return false;
  return value->is_number() ? value->as_int() != 0 : value->as_bool();
}

struct ListedImage {
  int64_t id = 0;
  int64_t width = 0;
  int64_t height = 0;
};

// The mask in COCO's compressed spelling: a tenth of what its runs take in memory.
std::string read_mask(const Json& value, const ListedImage& image) {
  if (image.width < 1 || image.height < 1)
    refuse(value, text("image ", image.id, " has no width and height in the ground truth"), kTruthFix);
  try {
    return image::read_compressed(value, image.width, image.height);
  } catch (const Error& error) {
    throw Error(error.blame(),
                text(value.where(), ": ", error.what(), " (image ", image.id, ", ", image.height, " high, ",
                     image.width, " wide)"),
                error.fix());
  }
}

struct MarkedTruth {
  size_t image = 0;
  task::CocoTruth truth = {};
  std::string mask = {};
};

struct MarkedDetection {
  size_t image = 0;
  task::CocoDetection detection = {};
  std::string mask = {};
};

class TruthList {
 public:
  TruthList(const NamedText& file, CocoIou iou) : file_(file), iou_(iou) {
    std::vector<JsonSlice> annotations;  // may stand before the images
    for_each_element(file_.text, file_.name, [&](std::string_view key, JsonSlice slice) {
      if (key == "images") add_image(slice);
      if (key == "categories") add_category(slice);
      if (key == "annotations") annotations.push_back(slice);
    });
    if (images_.empty()) fail("it lists no images");
    if (names_.empty()) fail("it lists no categories");
    for (const auto& [id, name] : names_) labels_.emplace(id, static_cast<int64_t>(labels_.size()));
    for (const JsonSlice slice : annotations) add_annotation(slice);
  }

  const std::vector<ListedImage>& images() const { return images_; }
  const std::vector<MarkedTruth>& truths() const { return truths_; }
  int64_t num_classes() const { return static_cast<int64_t>(names_.size()); }

  std::vector<std::string> classes() const {
    std::vector<std::string> all;
    for (const auto& [id, name] : names_) all.push_back(name);
    return all;
  }

  // User error when there is none.
  size_t image_at(const Json& id) const {
    const int64_t number = read_id(id);
    if (const auto found = by_id_.find(number); found != by_id_.end()) return found->second;
    refuse(id, text("there is no image ", number, " in ", file_.name),
           "are these the results of another set of images?");
  }
  int64_t label_of(const Json& category) const {
    const int64_t number = read_id(category);
    if (const auto found = labels_.find(number); found != labels_.end()) return found->second;
    refuse(category, text("there is no category ", number, " in ", file_.name),
           text("its categories are ", known_categories(), ": numbers as they stand there, not positions from 0"));
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> all;
    if (repeated_images_ > 0) all.push_back(text(file_.name, ": ", repeated_images_, " images are listed twice"));
    if (unlisted_ > 0)
      all.push_back(text(file_.name, ": ", unlisted_,
                         " annotations belong to images that are not listed (the first to ", first_unlisted_,
                         "): left out, as pycocotools does"));
    if (without_area_ > 0)
      all.push_back(text(file_.name, ": ", without_area_, " annotations have no area: that of their ",
                         iou_ == CocoIou::segm ? "mask" : "box", " is taken; pycocotools stops there"));
    if (has_id_zero_)
      all.push_back(text(file_.name,
                         ": an annotation has the id 0: pycocotools takes every detection of it for a false "
                         "one; here it counts like any other"));
    return all;
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw Error(Blame::user, text(file_.name, ": ", what), "a COCO file has images, annotations, categories");
  }

  std::string known_categories() const {
    std::vector<std::string> all;
    for (const auto& [id, name] : names_) {
      if (all.size() == 5) return base::join(all, ", ") + ", ...";
      all.push_back(text(id, " (", name, ")"));
    }
    return base::join(all, ", ");
  }

  void add_image(JsonSlice slice) {
    const auto [image, known] = read_element(file_, slice, kTruthFix, [&](const Json& one) {
      const ListedImage read{read_id(one.at("id")), one.int_or("width", 0), one.int_or("height", 0)};
      const auto found = by_id_.find(read.id);
      if (found != by_id_.end() &&
          std::pair(images_[found->second].width, images_[found->second].height) != std::pair(read.width, read.height))
        refuse(one, text("image ", read.id, " is listed twice, with another size"),
               "give each image a number of its own");
      return std::pair(read, found != by_id_.end());
    });
    if (known) {
      ++repeated_images_;
    } else {
      by_id_.emplace(image.id, images_.size());
      images_.push_back(image);
    }
  }

  void add_category(JsonSlice slice) {
    names_.insert(read_element(file_, slice, "categories have id and name", [&](const Json& one) {
      const int64_t id = read_id(one.at("id"));
      if (names_.contains(id)) refuse(one, text("category ", id, " is listed twice"), "keep one of them");
      return std::pair(id, one.at("name").as_string());
    }));
  }

  void add_annotation(JsonSlice slice) {
    struct Read {
      std::optional<int64_t> id;
      int64_t image_id = 0;
      bool has_area = true;
      MarkedTruth truth;
    };
    const Read read = read_element(file_, slice, kTruthFix, [&](const Json& one) {
      Read all;
      if (const Json* id = one.find("id")) {
        all.id = read_id(*id);
        if (ids_.contains(*all.id))
          refuse(*id, text("a second annotation has the id ", *all.id),
                 "give each a number of its own; pycocotools would silently score the last of them twice");
      }
      all.image_id = read_id(one.at("image_id"));
      task::CocoTruth& truth = all.truth.truth;
      truth.label = label_of(one.at("category_id"));
      truth.is_crowd = read_flag(one.find("iscrowd"));
      const auto found = by_id_.find(all.image_id);
      if (found == by_id_.end()) return all;
      all.truth.image = found->second;
      if (iou_ == CocoIou::bbox) {
        truth.box = read_box(one.at("bbox"));
      } else {
        all.truth.mask = read_mask(one.at("segmentation"), images_[found->second]);
      }
      const Json* area = one.find("area");
      all.has_area = area != nullptr;
      truth.area = area                    ? finite_number(*area, "the area")
                   : iou_ == CocoIou::bbox ? truth.box[2] * truth.box[3]
                                           : static_cast<double>(image::runs_area(image::parse_runs(all.truth.mask)));
      return all;
    });
    if (read.id) ids_.insert(*read.id), has_id_zero_ |= *read.id == 0;
    if (!by_id_.contains(read.image_id)) {
      if (unlisted_++ == 0) first_unlisted_ = read.image_id;
      return;
    }
    without_area_ += !read.has_area;
    truths_.push_back(read.truth);
  }

  const NamedText& file_;
  CocoIou iou_;
  std::vector<ListedImage> images_;
  std::unordered_map<int64_t, size_t> by_id_;
  std::map<int64_t, std::string> names_;
  std::unordered_map<int64_t, int64_t> labels_;
  std::vector<MarkedTruth> truths_;
  std::unordered_set<int64_t> ids_;
  int64_t repeated_images_ = 0;
  int64_t unlisted_ = 0;
  int64_t first_unlisted_ = 0;
  int64_t without_area_ = 0;
  bool has_id_zero_ = false;
};

class ResultList {
 public:
  ResultList(const NamedText& file, const TruthList& truth, CocoIou iou) : file_(file), truth_(truth), iou_(iou) {
    const size_t first = file_.text.find_first_not_of(" \n\r\t");
    if (first == std::string_view::npos || file_.text[first] != '[')
      throw Error(Blame::user, text(file_.name, ":1: this is no array of results"), kResultFix);
    for_each_element(file_.text, file_.name, [&](std::string_view, JsonSlice slice) {
      detections_.push_back(read_element(file_, slice, kResultFix, [&](const Json& one) { return read_one(one); }));
    });
  }

  const std::vector<MarkedDetection>& detections() const { return detections_; }

  std::vector<std::string> notes() const {
    if (detections_.empty()) return {text(file_.name, ": no detections")};
    if (iou_ == CocoIou::segm && *have_boxes_)
      return {
          text(file_.name,
               ": results with masks and boxes: small, medium and large go by the area of the box, as in pycocotools; "
               "by that of the mask if you leave out bbox")};
    return {};
  }

 private:
  static bool has_box(const Json& one) {
    const Json* box = one.find("bbox");
    return box && !(box->is_array() && box->size() == 0);
  }

  MarkedDetection read_one(const Json& one) {
    MarkedDetection all;
    task::CocoDetection& detection = all.detection;
    all.image = truth_.image_at(one.at("image_id"));
    detection.label = truth_.label_of(one.at("category_id"));
    detection.score = finite_number(one.at("score"), "the score");
    const ListedImage& image = truth_.images()[all.image];
    if (!have_boxes_) have_boxes_ = has_box(one);  // the first decides what areas mean, as in pycocotools
    if (*have_boxes_) {
      detection.box = read_box(one.at("bbox"));
      detection.area = detection.box[2] * detection.box[3];
      if (iou_ == CocoIou::bbox) return all;
    }
    if (!one.contains("segmentation"))
      refuse(one, *have_boxes_ ? "a result without a segmentation" : "a result without bbox and segmentation",
             *have_boxes_ ? "--iou bbox scores boxes" : kResultFix);
    all.mask = read_mask(one.at("segmentation"), image);
    if (*have_boxes_) return all;
    const image::Runs runs = image::parse_runs(all.mask);
    const auto box = image::runs_box(runs, image.height);
    std::copy(box.begin(), box.end(), detection.box.begin());
    detection.area = static_cast<double>(image::runs_area(runs));
    return all;
  }

  const NamedText& file_;
  const TruthList& truth_;
  CocoIou iou_;
  std::optional<bool> have_boxes_;
  std::vector<MarkedDetection> detections_;
};

// Which of `all` belong to each image, in their order.
template <class Marked>
std::vector<std::vector<size_t>> by_image(const std::vector<Marked>& all, size_t images) {
  std::vector<std::vector<size_t>> found(images);
  for (size_t i = 0; i < all.size(); ++i) found[all[i].image].push_back(i);
  return found;
}

}  // namespace

CocoEvaluation score_coco(const NamedText& truth, const NamedText& results, CocoIou iou) {
  const TruthList truths(truth, iou);
  const ResultList found(results, truths, iou);
  task::CocoScore score(truths.num_classes(), iou);
  const size_t images = truths.images().size();
  const auto truths_of = by_image(truths.truths(), images);
  const auto detections_of = by_image(found.detections(), images);
  for (size_t i = 0; i < images; ++i) {
    task::CocoImage image{truths.images()[i].id, truths.images()[i].height};
    for (const size_t t : truths_of[i]) {
      image.truths.push_back(truths.truths()[t].truth);
      if (iou == CocoIou::segm) image.truths.back().runs = image::parse_runs(truths.truths()[t].mask);
    }
    for (const size_t d : detections_of[i]) {
      image.detections.push_back(found.detections()[d].detection);
      if (iou == CocoIou::segm) image.detections.back().runs = image::parse_runs(found.detections()[d].mask);
    }
    score.add(image);
  }
  CocoEvaluation all{score.figures(), truths.classes(), score.images(), static_cast<int64_t>(truths.truths().size()),
                     static_cast<int64_t>(found.detections().size())};
  all.notes = truths.notes();
  for (auto& note : found.notes()) all.notes.push_back(std::move(note));
  return all;
}

}  // namespace lockstep::sources
