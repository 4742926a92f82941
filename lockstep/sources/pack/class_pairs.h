// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/json.h"

namespace lockstep::sources {

constexpr const char* kClassPairs = "pairs.csv";  // beside the shards of a part: ClassPairs::csv

std::string csv_name(const std::string& name);  // a cell, in quotes where it needs them

// On how many images classes of objects stand beside each other. Whole numbers only: the sum over the shards does not
// depend on order.
class ClassPairs {
 public:
  static constexpr size_t kMostClasses = 1000;  // half a million pairs

  void add(const std::vector<int64_t>& objects_per_class);  // of one image
  void add(const ClassPairs& other);
  bool empty() const { return images_.empty(); }
  base::Json to_json() const;
  static ClassPairs from_json(const base::Json& value);

  // "class,beside,weight" for each pair of classes that were seen on images: how much oftener both stand on one of
  // `num_images` than by chance. One more image is added to what was counted and to what is expected: of pairs that
  // would be rare by chance alone, little is said.
  std::string csv(const std::vector<std::string>& classes, int64_t num_images) const;

  bool operator==(const ClassPairs&) const = default;

 private:
  std::map<std::pair<int64_t, int64_t>, int64_t> images_;  // with both; (a, a): with a; the smaller label first
};

}  // namespace lockstep::sources
