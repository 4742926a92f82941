// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/data/json_slices.h"

namespace lockstep::data {

struct CocoImage {
  std::string file_name;
  base::Json id;  // a number as a rule
  int64_t width = 0;
  int64_t height = 0;
  std::vector<JsonSlice> annotations = {};
};

// A COCO JSON file: images, categories, annotations (boxes, polygons, RLE, captions), of which only the places are kept
// in memory. `text` must outlive the list.
class CocoList {
 public:
  // User error that names the line: no such arrays, an annotation of an image that is not listed.
  CocoList(std::string_view text, std::string source);

  const std::string& source() const { return source_; }
  const std::vector<CocoImage>& images() const { return images_; }
  const std::map<int64_t, std::string>& categories() const { return categories_; }  // by their number in the file
  // Adds what the annotations of an image say to `sample`: "objects" (each with "label" by `labels`, "category",
  // "bbox" and all that stood in the file but the number of the image), "captions". An annotation that stands in
  // `told` is passed over (lists overlap: the same number, category and box, or the same caption); what is added is put
  // there.
  void describe(size_t image, const std::map<std::string, int32_t>& labels, base::Json& sample,
                std::set<std::string>& told) const;

 private:
  std::string_view text_;
  std::string source_;
  std::vector<CocoImage> images_;
  std::map<int64_t, std::string> categories_;
};

}  // namespace lockstep::data
