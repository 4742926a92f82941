// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/sources/file_tree.h"
#include "lockstep/sources/json_slices.h"

namespace lockstep::sources {

struct CocoImage {
  std::string file_name;
  base::Json id;  // a number as a rule
  int64_t width = 0;
  int64_t height = 0;
  std::vector<JsonSlice> annotations = {};
  base::Json columns = {};  // what its maker says of it besides (year, place), numbers and texts; null: nothing
};

// An object's outline that is none (a polygon of two corners, runs of another size) is left out by prep, its box stays;
// this key of the object says why.
constexpr const char* kOutlineLeftOut = "segmentation_left_out";
void leave_out_bad_outlines(base::Json& sample);  // of a sample with "width", "height" and maybe "objects"

// A COCO JSON file: images, categories, annotations (boxes, polygons, RLE, captions), of which only the positions are
// kept in memory. `text` must outlive the list.
class CocoList {
 public:
  // User error that names line and column: no such arrays, values of a wrong kind, a category that is not listed, one
  // number for two images. What is common in lists and does no harm is left out: see left_out().
  CocoList(std::string_view text, std::string source);

  const std::string& source() const { return source_; }
  const std::vector<CocoImage>& images() const { return images_; }
  // Annotations of images that are not listed, those whose box has no area, images that are listed twice.
  const std::vector<Refused>& left_out() const { return left_out_; }
  // Boxes outside of their images and numbers that two annotations have, a sentence each.
  std::vector<std::string> notes() const;
  const std::map<int64_t, std::string>& categories() const { return categories_; }  // by their number in the file
  // Adds what the annotations of an image say to `sample`: "objects" (each with "label" by `labels`, "category",
  // "bbox" and all that stood in the file but the number of the image), "captions". An annotation that stands in
  // `told` is passed over (lists overlap: the same number, category and box, or the same caption); what is added is put
  // there.
  void describe(size_t image, const std::map<std::string, int32_t>& labels, base::Json& sample,
                std::set<std::string>& told) const;

 private:
  void add_image(JsonSlice slice, std::unordered_map<std::string, size_t>& by_id);
  void add_annotation(JsonSlice slice, const std::unordered_map<std::string, size_t>& by_id);

  std::string_view text_;
  std::string source_;
  std::vector<CocoImage> images_;
  std::vector<Refused> left_out_;
  std::map<int64_t, std::string> categories_;
  std::unordered_set<std::string> ids_;  // of annotations
  int64_t outside_ = 0, repeated_ = 0;
  std::string first_outside_, first_repeated_;  // numbers of annotations
};

}  // namespace lockstep::sources
