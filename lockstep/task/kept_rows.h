// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"

namespace lockstep::task {

// What a score keeps of every sample, where sums alone would not do or would depend on the ranks: rows of plain
// members, one or several a sample, each with the sample's `id`.
template <class Row>
class KeptRows {
  static_assert(std::is_trivially_copyable_v<Row>);

 public:
  void add(const Row& row) { rows_.push_back(row); }
  int64_t size() const { return static_cast<int64_t>(rows_.size()); }
  const std::vector<Row>& as_added() const { return rows_; }

  // For Score::pack and Score::merge.
  std::string pack() const { return {reinterpret_cast<const char*>(rows_.data()), rows_.size() * sizeof(Row)}; }
  void merge(std::string_view packed) {
    base::ensure(packed.size() % sizeof(Row) == 0, "ranks hand over whole rows");
    if (packed.empty()) return;  // a rank without samples; memcpy takes no null
    const size_t before = rows_.size();
    rows_.resize(before + packed.size() / sizeof(Row));
    std::memcpy(rows_.data() + before, packed.data(), packed.size());
  }

  // By sample, those of one sample as they were added: the same whatever ranks added them.
  std::vector<Row> in_order() const {
    std::vector<Row> all = rows_;
    std::stable_sort(all.begin(), all.end(), [](const Row& a, const Row& b) { return a.id < b.id; });
    return all;
  }

 private:
  std::vector<Row> rows_;
};

// What is shown of the worst samples, `most` of them. `mark` says how good a sample is: the lower, the worse; of equal
// ones the first samples are kept. REQUIRES: marks are numbers, and no sample comes twice
class WorstRecords {
 public:
  using Key = std::pair<double, int64_t>;  // mark, sample

  explicit WorstRecords(int64_t most) : most_(static_cast<size_t>(std::max<int64_t>(most, 0))) {}

  bool takes(double mark, int64_t id) const;  // asked before a record is made, which may be costly
  void add(double mark, int64_t id, base::Json record);
  const std::map<Key, base::Json>& worst_first() const { return records_; }

  // For Score::pack and Score::merge.
  std::string pack() const;
  void merge(std::string_view packed);

 private:
  size_t most_;
  std::map<Key, base::Json> records_;
};

// Of a score that keeps several things: one string for Score::pack, each with its length in front.
std::string join_parts(const std::vector<std::string>& parts);
// Takes the first of them off.
std::string_view next_part(std::string_view& packed);

}  // namespace lockstep::task
