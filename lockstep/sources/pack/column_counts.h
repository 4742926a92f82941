// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/json.h"

namespace lockstep::sources {

constexpr const char* kColumnWeights = "columns.csv";  // beside the shards of a part: ColumnCounts::csv

// On how many images of one value of a column (year, place) the classes of objects stand. Whole numbers only: the sum
// over the shards does not depend on order.
class ColumnCounts {
 public:
  static constexpr size_t kMostValues = 10000;  // of all columns; such as a number of each image say nothing

  // One image: its columns ("columns" of a sample's json: numbers and texts), and how often each class is on it.
  void add(const base::Json& columns, const std::vector<int64_t>& objects_per_class);
  void add(const ColumnCounts& other);
  bool empty() const { return images_.empty(); }
  base::Json to_json() const;
  static ColumnCounts from_json(const base::Json& value);

  // "class,COLUMN=VALUE,weight": how much oftener a class stands on images of this value than by chance, with one more
  // image added to what was counted and to what is expected. Whole numbers of more than 20 kinds are taken by the
  // hundred: "year=1400..1499".
  std::string csv(const std::vector<std::string>& classes) const;

  bool operator==(const ColumnCounts&) const = default;

 private:
  static constexpr int64_t kAll = -1;
  using Key = std::pair<std::string, std::string>;         // column and value
  std::map<Key, std::map<int64_t, int64_t>> images_ = {};  // by label; kAll: with whatever on it
};

}  // namespace lockstep::sources
